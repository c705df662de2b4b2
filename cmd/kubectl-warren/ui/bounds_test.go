package ui

import (
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
)

// A user who may write RoleBindings can't make another user's page too large to be shown.
func TestManySubjectsAndBindings(t *testing.T) {
	t.Run("SEC-X41 the page of a namespace shows at most 1,000 subjects and 20 bindings of each, and how many are "+
		"left out", func(t *testing.T) {
		access := &rights.Access{Subjects: make([]rights.Entry, maxSubjects+7)}
		access.Subjects[3].Via = make([]rights.Via, 500)
		leftOut := strings.Join(boundAccess(access), "; ")
		if len(access.Subjects) != maxSubjects || len(access.Subjects[3].Via) != maxVia {
			t.Errorf("%d subjects, %d bindings", len(access.Subjects), len(access.Subjects[3].Via))
		}
		for _, want := range []string{"7 more subjects with rights are left out", "only the first 20 are shown"} {
			if !strings.Contains(leftOut, want) {
				t.Errorf("%q is not in %q", want, leftOut)
			}
		}
	})
}
