package forest_test

import (
	"slices"
	"testing"

	"github.com/warren-tenancy/warren/internal/forest"
)

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
