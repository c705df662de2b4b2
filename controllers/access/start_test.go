package access

import (
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// FLT-U10: the start phase ends when each tenant that existed at the start has had a pass, in any order.
func TestStartPhase(t *testing.T) {
	listed := func(names ...string) (all []v1alpha1.LNamespace) {
		for _, name := range names {
			all = append(all, *build.Tenant(name).Object())
		}
		return all
	}
	for name, tc := range map[string]struct {
		before, after []string // tenants whose pass comes before, and after, setTenants
		tenants       []string
		over          bool
	}{
		"no tenant":                         {over: true},
		"one is left":                       {tenants: []string{"a", "b"}, before: []string{"a"}},
		"each had its pass":                 {tenants: []string{"a", "b"}, before: []string{"a"}, after: []string{"b"}, over: true},
		"one that came later is not waited": {tenants: []string{"a"}, before: []string{"c"}, after: []string{"a"}, over: true},
		"one had two":                       {tenants: []string{"a", "b"}, after: []string{"a", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newStartPhase(make(chan struct{}))
			for _, tenant := range tc.before {
				p.recordPass(tenant)
			}
			if p.isOver() {
				t.Error("it is over before the tenants are known")
			}
			p.setTenants(listed(tc.tenants...))
			for _, tenant := range tc.after {
				p.recordPass(tenant)
			}
			if p.isOver() != tc.over {
				t.Errorf("over: %v, want %v", p.isOver(), tc.over)
			}
			if tc.over {
				p.recordPass("late") // a pass that began before the phase ended
			}
		})
	}
}
