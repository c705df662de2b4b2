package distribute

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheGarbageCollectorIsFirst(t *testing.T) {
	t.Run("DIST-D117 copies deleted by the garbage collector before the watch shows that RD was deleted are not created "+
		"again", func(t *testing.T) {
		for name, show := range map[string]func(c *cluster, late Input){
			"each": func(c *cluster, late Input) {
				c.events = slices.DeleteFunc(c.events, func(one Input) bool { return one == late })
			},
			"in a list": func(c *cluster, _ Input) { c.events = nil; c.listCopies() },
		} {
			t.Run(name, func(t *testing.T) {
				c := newCluster(t, "d0", "d1")
				c.distribute("new")
				c.settle(time.Minute)
				c.writes = nil
				late := DistributionGone{c.rds["rd"]}
				c.deleteDistribution()
				show(c, late)
				c.settle(time.Minute)
				c.events = append(c.events, late)
				c.settle(time.Minute)
				if diff := cmp.Diff([]string(nil), c.writes); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
	t.Run("DIST-D117 a copy that a user deleted is created again at once", func(t *testing.T) {
		c := newCluster(t, "d0", "d1")
		c.distribute("new")
		c.settle(time.Minute)
		c.writes = nil
		c.remove("d0/settings")
		c.settle(0)
		if diff := cmp.Diff([]string{"create d0"}, c.writes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNothingIsKeptOfNamespacesThatAreGone(t *testing.T) {
	for name, leads := range map[string]bool{"on the leader": true, "on a standby": false} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "d0", "d1")
			c.distribute("new")
			c.settle(time.Minute)
			c.state.leading = leads
			old, late := c.forest, c.forest.WithoutNamespace("d1")
			c.forest = late.WithoutNamespace("d0")
			c.remove("d0/settings")
			c.showAll()
			c.applyTo(ForestChanged{old, c.forest, []string{"d0", "d1"}})
			c.remove("d1/settings")
			c.settle(time.Minute)
			if kept := c.state.runs.at("rd").troubles.vanished; len(kept) > 0 {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}
