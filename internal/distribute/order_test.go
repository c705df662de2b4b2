package distribute

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// TestAnyOrder lets a State work in 200 random orders, with answers that are lost, watches that lag and restarts, while the specification and
// others' objects change. In the end every namespace has what it should.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, "d0", "d1", "d2", "d3")
			r := c.random(seed)
			c.lose = func() bool { return r.IntN(10) == 0 }
			policies := []v1alpha1.ConflictPolicy{v1alpha1.ConflictFail, v1alpha1.ConflictSkip, v1alpha1.ConflictAdoptIdentical, v1alpha1.ConflictOverwrite}
			for step := range 8 {
				policy, data := policies[r.IntN(len(policies))], fmt.Sprintf("data %d", step)
				switch namespace := fmt.Sprintf("d%d", r.IntN(4)); r.IntN(6) {
				case 0:
					c.start()
				case 1:
					if c.objects[namespace+"/settings"] == nil {
						c.stranger(namespace, data)
					}
				case 2:
					if c.objects[namespace+"/settings"] != nil {
						c.remove(namespace + "/settings")
					}
				case 3:
					if c.rds["rd"] != nil {
						c.deleteDistribution()
					}
				default:
					c.distribute(data, conflictPolicy(policy), reverts)
				}
				if r.IntN(2) == 0 {
					c.settle(time.Duration(r.IntN(3)) * time.Second)
				}
			}
			c.lose = nil
			c.distribute("last", conflictPolicy(v1alpha1.ConflictOverwrite), reverts)
			c.settle(time.Hour)
			want := map[string]string{"d0": "last", "d1": "last", "d2": "last", "d3": "last"}
			if diff := cmp.Diff(want, c.data()); diff != "" || c.ready() != string(v1alpha1.ReasonDistributed) {
				t.Errorf("ready: %s\n%s", c.ready(), diff)
			}
			writes := len(c.writes)
			if c.settle(time.Hour); len(c.writes) != writes {
				t.Errorf("got %v at rest", c.writes[writes:])
			}
		})
	}
}
