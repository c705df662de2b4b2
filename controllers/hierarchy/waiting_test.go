package hierarchy

import (
	"slices"
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// The forest has three roots, acme, zeta and more, with one child each. Of the other two namespaces, loose has no parent, and that of stray
// does not exist. acme-a asks for a place that it can't have.
func TestWaiting(t *testing.T) {
	s := forest.New(forest.Rules{})
	for _, root := range []string{"acme", "zeta", "more"} {
		s = s.WithNamespace(&forest.Namespace{Name: root, UID: root, Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}}).
			WithNamespace(&forest.Namespace{Name: root + "-a", UID: root + "-a", Labels: map[string]string{v1alpha1.LabelParent: root}})
	}
	s = s.WithNamespace(&forest.Namespace{Name: "loose", UID: "loose"}).
		WithNamespace(&forest.Namespace{Name: "stray", UID: "stray", Labels: map[string]string{v1alpha1.LabelParent: "nowhere"}})
	s = s.WithNamespace(&forest.Namespace{Name: "orphan", UID: "orphan",
		Labels: map[string]string{v1alpha1.LabelParent: "wanted-by-orphans"}}).
		WithNamespace(&forest.Namespace{Name: "halted", UID: "halted", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot,
			v1alpha1.LabelParent: "zeta-a"}})
	s = s.WithSub(&forest.Sub{Parent: "more-a", Name: "wanted", UID: "wanted"})

	old := s.WithNamespace(&forest.Namespace{Name: "gone", UID: "gone"})
	below := func(parent string) *forest.Hierarchy {
		return &forest.Hierarchy{Namespace: "acme-a", UID: "h", Parent: &parent}
	}
	for name, test := range map[string]struct {
		waits   string
		asks    *forest.Hierarchy
		changed string
		want    bool
	}{
		"itself":                              {"acme-a", below("zeta-a"), "acme-a", true},
		"its own tree":                        {"acme-a", below("zeta-a"), "acme", true},
		"the parent that it asks for":         {"acme-a", below("zeta-a"), "zeta-a", true},
		"the tree of that parent":             {"acme-a", below("zeta-a"), "zeta", true},
		"a tree that has nothing to do":       {"acme-a", below("zeta-a"), "more", false},
		"a namespace in no tree":              {"acme-a", below("zeta-a"), "loose", false},
		"a parent that does not exist":        {"acme-a", below("not-yet"), "not-yet", true},
		"elsewhere, the parent doesn't exist": {"acme-a", below("not-yet"), "more", false},
		"elsewhere, the parent is in no tree": {"acme-a", below("stray"), "more", true},
		"elsewhere, and to be a root":         {"acme-a", below(""), "more", false},
		"the name of a required child": {"acme-a", &forest.Hierarchy{Namespace: "acme-a", UID: "h", Required: []string{"loose"}}, "loose",
			true},
		"whoever has the name of the child": {"acme-a", &forest.Hierarchy{Namespace: "acme-a", UID: "h", Required: []string{"wanted"}},
			"more-a", true},
		"who waits for the child's name": {"acme-a", &forest.Hierarchy{Namespace: "acme-a", UID: "h",
			Required: []string{"wanted-by-orphans"}}, "orphan", true},
		"what is halted in the parent's tree": {"acme-a", below("zeta"), "halted", true},
		"elsewhere, of a required child": {"acme-a", &forest.Hierarchy{Namespace: "acme-a", UID: "h", Required: []string{"wanted"}}, "zeta",
			false},
		"elsewhere, nothing is asked for": {"acme-a", nil, "more", true},
		"elsewhere, it is in no tree":     {"loose", &forest.Hierarchy{Namespace: "loose", UID: "h"}, "more", true},
	} {
		t.Run("HIER-R3 a request that waits is checked again after changes in its tree, in the parent's, or of a required child's "+
			"name; after all, if x or the parent is plain: "+name, func(t *testing.T) {
			now := s
			if test.asks != nil {
				now = s.WithHierarchy(test.asks)
			}
			var w waiting
			w.add(test.waits)
			got := slices.Contains(slices.Collect(w.concernedBy(view.Change{Old: old, New: now, Namespaces: []string{test.changed}})), test.waits)
			if got != test.want {
				t.Errorf("a change of %s concerns %s: %t, want %t", test.changed, test.waits, got, test.want)
			}
		})
	}
	t.Run("HIER-R3 a request that waits is not checked again if nothing has changed in the forest", func(t *testing.T) {
		var w waiting
		w.add("acme-a")
		if got := slices.Collect(w.concernedBy(view.Change{Old: s, New: s, Namespaces: []string{"acme-a"}})); len(got) != 0 {
			t.Errorf("%v are asked for", got)
		}
	})
}
