package tree_test

import (
	"slices"
	"testing"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
)

func TestCompareNames(t *testing.T) {
	want := []string{"a", "a-1-b", "a-1-c", "a-2", "a-02", "a-10", "a-10-1", "b", "b1", "b01x", "b2"}
	for range 3 {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortFunc(got, tree.CompareNames)
		for i, name := range got {
			for j, other := range got {
				if sign := tree.CompareNames(name, other); (sign < 0) != (i < j) || (sign == 0) != (i == j) {
					t.Errorf("%s and %s: %d", name, other, sign)
				}
			}
		}
	}
	got := []string{"team-10", "team-9", "team-2"}
	if slices.SortFunc(got, tree.CompareNames); !slices.Equal(got, []string{"team-2", "team-9", "team-10"}) {
		t.Error(got)
	}
}
