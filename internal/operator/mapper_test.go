package operator

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestResettableMapper(t *testing.T) {
	gadget, made := schema.GroupKind{Group: "example.com", Kind: "Gadget"}, []string{}
	var refusal error
	next := "v1alpha1"
	m := &resettableMapper{own: mapOwnKinds(), newMapper: func() (meta.RESTMapper, error) {
		made = append(made, next)
		one := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: gadget.Group, Version: next}})
		one.Add(gadget.WithVersion(next), meta.RESTScopeNamespace)
		return one, refusal
	}}
	m.Reset()
	version := func() string {
		t.Helper()
		mapping, err := m.RESTMapping(gadget)
		if err != nil {
			t.Fatal(err)
		}
		return mapping.Resource.Version
	}
	if next = "v1"; version() != "v1alpha1" {
		t.Error("another version without Reset")
	}
	if meta.MaybeResetRESTMapper(m); version() != "v1" {
		t.Error("the old version after Reset")
	}
	next, refusal = "v2", errors.New("no client")
	if m.Reset(); version() != "v1" {
		t.Error("a mapper that could not be made is in force")
	}
	if len(made) != 3 {
		t.Errorf("made %v: a mapper is made by Reset alone", made)
	}
}
