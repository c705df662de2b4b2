package lnamespace

import (
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

func TestTheEndOfAHaltedNamespaceConcernsItsTenant(t *testing.T) {
	t.Run("SUB-L13 when a namespace goes after its parent, status.subNamespaces of its tenant is counted anew", func(t *testing.T) {
		without := forest.New(forest.Rules{}).WithTenant(&forest.Tenant{Name: "acme", UID: "acme"}).
			WithNamespace(&forest.Namespace{Name: "acme", UID: "1", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}})
		with := without.WithNamespace(&forest.Namespace{Name: "low", UID: "2", Labels: map[string]string{v1alpha1.LabelParent: "mid"},
			Annotations: map[string]string{v1alpha1.AnnotationAncestry: "acme/mid"}})
		if count, _ := with.Descendants("acme"); count != 1 {
			t.Fatalf("%d namespaces count", count)
		}
		requests := Concerned(view.Change{Old: with, New: without, Namespaces: []string{"low"}})
		if len(requests) != 1 || requests[0].Name != "acme" {
			t.Errorf("got %v, want acme", requests)
		}
	})
}
