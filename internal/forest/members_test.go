package forest_test

import (
	"slices"
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// cutOff is the tree of r, which has room for two namespaces. Its namespace p was deleted: a, its child, is halted, with b below. Another p
// is in the tree of o in taken.
func cutOff() (missing, taken *forest.Snapshot) {
	s := grown(namespace("r", root, placed("r")), namespace("a", below("p"), placed("r/p/a")), namespace("b", below("a"), placed("r/p/a/b")),
		namespace("o", root, placed("o")), namespace("x", below("gone"), placed("o/gone/x")))
	rules := s.Rules()
	rules.Limits = v1alpha1.Limits{SubNamespaces: new(int32(2))}
	missing = s.WithRules(rules)
	other := namespace("p", below("o"), placed("o/p"))
	other.UID = "other"
	return missing, missing.WithNamespace(other)
}

func TestNamespacesWithoutTheirParentCountInTheirTree(t *testing.T) {
	t.Run("SUB-L11 namespaces whose parent was deleted, or whose parent has another namespace of its name, "+
		"count against the limits of their tree", func(t *testing.T) {
		missing, taken := cutOff()
		for name, s := range map[string]*forest.Snapshot{"parent is missing": missing, "parent's name is taken": taken} {
			if full := forest.NoRoom(s, "r", 0, 1); full == "" {
				t.Errorf("%s: the tree has room for more than its limit, and has too many when the parent is back", name)
			}
			if back := s.WithNamespace(namespace("p", below("r"))); forest.NoRoom(back, "r", 0, 0) == "" {
				t.Errorf("%s: with its parent there are three", name)
			}
		}
		gone := missing.WithoutNamespace("b")
		if forest.NoRoom(gone, "r", 0, 1) != "" || !forest.ConcernedBy(gone, missing, []string{"b"})["r"] {
			t.Error("a place is free, and who waits for one in that tree is not asked again")
		}
	})
}

func TestNamespacesWithoutTheirParentMoveBackIntoTheirFullTree(t *testing.T) {
	t.Run("SUB-L12 such namespaces may move back into their tree although it is full, as they count there already", func(t *testing.T) {
		missing, taken := cutOff()
		for name, s := range map[string]*forest.Snapshot{"parent is missing": missing, "parent's name is taken": taken} {
			if full := forest.Crowded(s.WithNamespace(forest.Placed(s.Namespace("a"), "r")), s, "a"); len(full) > 0 {
				t.Errorf("%s: they count in the tree already, and it says %q", name, full)
			}
			if full := forest.Crowded(s.WithNamespace(forest.Placed(s.Namespace("x"), "r")), s, "x"); len(full) == 0 {
				t.Errorf("%s: x joins a full tree", name)
			}
		}
	})
}

func TestMembers(t *testing.T) {
	s := grown(namespace("r", root, placed("r")), namespace("a", below("p"), placed("r/p/a")), namespace("b", below("a"), placed("r/p/a/b")),
		namespace("o", root, placed("o")), namespace("x", below("gone"), placed("o/gone/x")))
	taken := namespace("p", below("o"), placed("o/p"))
	taken.UID = "other"
	for name, now := range map[string]*forest.Snapshot{
		"QUOTA-52 a namespace whose parent was deleted is still a member of its tree, with those below":        s,
		"QUOTA-52 a namespace whose parent's name is in another tree by now is still a member of its own tree": s.WithNamespace(taken),
	} {
		t.Run(name, func(t *testing.T) {
			if got := now.Members("r"); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("got %v", got)
			}
			if gone := now.WithoutNamespace("b"); !forest.ConcernedBy(gone, now, []string{"b"})["r"] {
				t.Error("when one of them goes, the tree is not looked at again")
			}
		})
	}
}
