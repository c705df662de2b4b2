package copies_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

func grants(c *copies.Copy) { c.Access = true }

func TestPlanWithdrawal(t *testing.T) {
	stranded := func() []string { return []string{"x in missing"} }
	tests := map[string]struct {
		facts []fact
		want  copies.Verb
	}{
		"another copy stays as it is": {[]fact{source("acme", "update", changed), copied("x", "acme", "update")},
			copies.Nothing},
		"access that is what its source gives": {[]fact{source("acme", "update"), copied("x", "acme", "update", grants)},
			copies.Nothing},
		"access whose source has changed": {[]fact{source("acme", "update", changed), copied("x", "acme", "update", grants)},
			copies.Withdraw},
		"access whose source is yet to be read": {[]fact{source("acme", "update", unread), copied("x", "acme", "update", grants)},
			copies.Nothing},
		"access whose source is not in sight": {[]fact{copied("x", "acme", "update", grants)}, copies.Look},
		"access whose source is gone": {[]fact{copied("x", "acme", "update", grants), lost("acme", copies.Confirmed)},
			copies.Delete},
		"access whose source is gone with its namespace": {[]fact{copied("x", "acme", "update", grants), lost("acme", copies.GoneWithNamespace)},
			copies.Delete},
		"another copy whose source is gone so": {[]fact{copied("x", "acme", "update"), lost("acme", copies.GoneWithNamespace)}, copies.Nothing},
		"access whose source may be there":     {[]fact{copied("x", "acme", "update", grants), lost("acme", copies.Doubtful)}, copies.Nothing},
		"access that somebody forged": {[]fact{source("acme", "update", changed), copied("x", "acme", "update", grants, forged)},
			copies.Nothing},
		"nothing is given": {[]fact{source("acme", "update")}, copies.Nothing},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := world(acme(stranded()...), tt.facts...)
			if got := w.Plan(at("x")); got.Verb != tt.want {
				t.Errorf("got %v, want verb %v", got, tt.want)
			}
		})
	}
	t.Run("once compared, the second plan is empty until the source changes again", func(t *testing.T) {
		w := world(acme(stranded()...), source("acme", "update", changed), copied("x", "acme", "update", grants))
		w.Copies.SetCompared(at("x"), w.Plan(at("x")).Hash.Content)
		if got := w.Plan(at("x")); got.Verb != copies.Nothing {
			t.Errorf("got %v, want nothing", got)
		}
		w.Sources.At(at("acme")).Content = content("acme", 3)
		if got := w.Plan(at("x")); got.Verb != copies.Withdraw {
			t.Errorf("got %v, want another look", got)
		}
	})
}

func TestWithdraw(t *testing.T) {
	slot := copies.Slot{Kind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}, Namespace: "x", Name: "warren:users"}
	binding := func(role, uid string, users ...string) map[string]any {
		subjects := []any{}
		for _, user := range users {
			subjects = append(subjects, map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user})
		}
		hash := copies.Hash{Mode: v1alpha1.ModeUpdate, Place: copies.PlaceOf(slot, "acme"), Content: content("acme", 1)}
		return map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
			"metadata": map[string]any{"name": slot.Name, "uid": "u", "resourceVersion": "7", "annotations": map[string]any{
				v1alpha1.AnnotationLNamespaceUID: uid, v1alpha1.AnnotationSourceHash: hash.String(),
			}},
			"roleRef": map[string]any{"kind": "ClusterRole", "name": role}, "subjects": subjects,
		}
	}
	tests := map[string]struct {
		there  map[string]any
		remove bool
		kept   []string // nil: the copy is not written
	}{
		"one is off the list":                {there: binding("admin", "one", "alice", "bob"), kept: []string{"bob"}},
		"nobody is, and one came":            {there: binding("admin", "one", "bob")},
		"all are":                            {there: binding("admin", "one", "alice"), remove: true},
		"another LNamespace of the name":     {there: binding("admin", "two", "bob"), remove: true},
		"it bears no UID":                    {there: binding("admin", "", "bob"), remove: true},
		"the role is another":                {there: binding("edit", "one", "bob"), remove: true},
		"nothing was given, nothing is left": {there: binding("admin", "one"), remove: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			source, err := copies.Render(slot.At("acme"), binding("admin", "one", "bob", "carol"), copies.Rules{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := source.Withdraw(slot, tt.there)
			if err != nil || got.Remove != tt.remove || (got.Body != nil) != (tt.kept != nil) {
				t.Fatalf("got %+v, %v", got, err)
			}
			if got.Body == nil {
				return
			}
			var written struct {
				Metadata struct {
					UID, ResourceVersion string
					Annotations          map[string]string
				}
				Subjects []struct{ Name string }
			}
			if err := json.Unmarshal(got.Body, &written); err != nil {
				t.Fatal(err)
			}
			if len(written.Subjects) != 1 || written.Subjects[0].Name != tt.kept[0] || written.Metadata.UID != "u" ||
				written.Metadata.ResourceVersion != "7" {
				t.Errorf("got %+v", written)
			}
			hash := copies.ParseHash(written.Metadata.Annotations[v1alpha1.AnnotationSourceHash])
			if hash.Place != copies.PlaceOf(slot, "acme") || hash.Content == content("acme", 1) {
				t.Errorf("got %v: the copy stays ours, and is written anew when the namespace has a path again", hash)
			}
		})
	}
}
