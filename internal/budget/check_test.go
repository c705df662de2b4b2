package budget_test

import (
	"slices"
	"testing"

	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
)

// The integration test of the CRDs has the same table.
func TestCheck(t *testing.T) {
	for _, tc := range build.Budgets() {
		t.Run(tc.Name, func(t *testing.T) {
			got := budget.Check(tc.Hard)
			want := []string(nil)
			if tc.Refusal != "" {
				want = []string{tc.Refusal}
			}
			if len(tc.Hard) > budget.MaxKeys {
				want = []string{"must have at most 16 keys: it has 17"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
