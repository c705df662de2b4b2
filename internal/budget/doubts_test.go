package budget_test

import (
	"maps"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/budget"
)

// contest is a tree of which one account forges Events in namespace forged, while a Deployment in namespace web needs ten pods.
type contest struct {
	limit    budget.Amounts
	rows     []budget.Row
	refusals map[string]budget.Refusal
	doubts   budget.Doubts
	now      time.Time
}

const forged, web = 0, 1

func newContest() *contest {
	c := &contest{limit: budget.Amounts{pods: 20, cpu: 20_000}, refusals: map[string]budget.Refusal{}, now: noon}
	for _, name := range []string{"forged", "web", "db"} {
		c.rows = append(c.rows, budget.Row{Namespace: name, Under: []int{0}})
	}
	return c
}

// refuse records an Event, as controllers/budget does.
func (c *contest) refuse(at int, requested budget.Amounts) {
	row := c.rows[at]
	before := c.refusals[row.Namespace]
	c.refusals[row.Namespace] = budget.Refusal{At: c.now, Requested: requested, Share: row.Spec,
		Again: c.now.Sub(before.At) < budget.RefusedBefore}
}

// pass counts what was written, plans and writes, 50 ms after the last time.
func (c *contest) pass() {
	c.now = c.now.Add(50 * time.Millisecond)
	for i := range c.rows {
		row := &c.rows[i]
		if row.Counted = maps.Clone(row.Spec); row.Used == nil {
			row.Used = budget.Amounts{}
		}
	}
	waiting := map[string]budget.Refusal{}
	for name, refusal := range c.refusals {
		if c.now.Sub(refusal.At) < budget.RefusalHolds {
			waiting[name] = refusal
		}
	}
	c.doubts = c.doubts.Judge(c.rows, waiting, c.now)
	for _, share := range budget.Plan([]budget.Limit{{Hard: c.limit}}, c.rows, waiting, c.now) {
		for i := range c.rows {
			if c.rows[i].Namespace == share.Namespace {
				c.rows[i].Spec = share.Hard
			}
		}
	}
}

// deployment is what the controller of ReplicaSets does: it creates pods until one is refused, and then waits, each time twice as long.
type deployment struct {
	next  time.Time
	pause time.Duration
}

func (d *deployment) run(c *contest, replicas int64) {
	row := &c.rows[web]
	if row.Used[pods] >= replicas || c.now.Before(d.next) {
		return
	}
	for row.Used[pods] < replicas {
		if row.Used[pods]+1 > row.Counted[pods] {
			d.pause = max(2*d.pause, 5*time.Millisecond)
			d.next = c.now.Add(d.pause)
			c.refuse(web, budget.Amounts{pods: 1})
			return
		}
		row.Used = budget.Amounts{pods: row.Used[pods] + 1}
	}
}

func TestForgedEventsHoldNoRoom(t *testing.T) {
	t.Run("QUOTA-56 while forged Events ask for all pods of the tree every 4 s, a Deployment of 10 beside gets its pods "+
		"within 15 s", func(t *testing.T) {
		for name, forge := range map[string]func(n int) budget.Amounts{
			"all pods":                    func(int) budget.Amounts { return budget.Amounts{pods: 20} },
			"half of the pods":            func(int) budget.Amounts { return budget.Amounts{pods: 10} },
			"one pod":                     func(int) budget.Amounts { return budget.Amounts{pods: 1} },
			"all, and one more":           func(n int) budget.Amounts { return budget.Amounts{pods: 20 + int64(n%2)} },
			"pods and cpu in turn":        func(n int) budget.Amounts { return []budget.Amounts{{pods: 20}, {cpu: 20_000}}[n%2] },
			"pods, and what is not there": func(n int) budget.Amounts { return []budget.Amounts{{pods: 20}, {pods: 20, cpu: 90_000}}[n%2] },
		} {
			for _, before := range []int{0, 1, 3, 5, 30, 300} { // seconds for which it forges already
				c, d := newContest(), &deployment{}
				c.pass()
				for tick := range (before + 15) * 20 {
					if tick%80 == 0 {
						c.refuse(forged, forge(tick/80))
					}
					if tick >= before*20 {
						d.run(c, 10)
					}
					c.pass()
				}
				if used := c.rows[web].Used[pods]; used != 10 {
					t.Errorf("%s, for %d s before: %d of 10 pods, shares %d and %d", name, before, used, c.rows[web].Spec[pods],
						c.rows[forged].Spec[pods])
				}
			}
		}
	})
}

// A person asks for more than is free every 2 s, and holds 90 of 100 pods without use.
func TestARequestThatCannotBeServedKeepsNoRoomFromOthers(t *testing.T) {
	t.Run("QUOTA-57 a namespace that asks for more than there is keeps no unused room from one that needs it", func(t *testing.T) {
		hundred := []budget.Limit{{Hard: budget.Amounts{pods: 100}}}
		refusals := map[string]budget.Refusal{"x": refused(budget.Amounts{pods: 101}, true), "y": refused(budget.Amounts{pods: 1}, true)}
		shares := budget.Plan(hundred, []budget.Row{row("x", 90, 0), row("y", 10, 10)}, refusals, noon)
		if len(shares) != 1 || shares[0].Namespace != "x" {
			t.Errorf("x keeps what it does not use: %v", shares)
		}
	})
}

func TestAControllerThatTriesAgainWaitsAsBefore(t *testing.T) {
	t.Run("QUOTA-58 a namespace that uses some of what it got for a refusal waits for more at once", func(t *testing.T) {
		rows, refusals := []budget.Row{row("a", 4, 2)}, func(at time.Time) map[string]budget.Refusal {
			return map[string]budget.Refusal{"a": {At: at, Requested: budget.Amounts{pods: 2}}}
		}
		doubts := budget.Doubts{}.Judge(rows, refusals(noon), noon)
		rows[0].Used = budget.Amounts{pods: 3}
		later := noon.Add(budget.RefusalHolds)
		waiting := refusals(later)
		if doubts.Judge(rows, waiting, later); len(waiting) == 0 {
			t.Error("it has used a pod, and no longer waits")
		}
		rows[0].Used = budget.Amounts{pods: 2}
		if doubts.Judge(rows, waiting, later); len(waiting) > 0 {
			t.Error("it has used nothing, and still waits")
		}
	})
}

// Two namespaces have half of the room each, unused, and each needs all of it for one object: a large PersistentVolumeClaim.
func TestTwoLargeRequestsDoNotBlockEachOther(t *testing.T) {
	t.Run("QUOTA-120 of two namespaces that each ask for more than half of what is free, one gets it at once; the other waits until the "+
		"first leaves it unused", func(t *testing.T) {
		for name, amounts := range map[string][2]int64{"both all": {20, 20}, "forged all": {20, 12}, "forged less": {12, 18}} {
			c := newContest()
			c.pass()
			c.rows[forged].Spec, c.rows[web].Spec, c.rows[2].Spec = budget.Amounts{pods: 10, cpu: 0}, budget.Amounts{pods: 10, cpu: 0},
				budget.Amounts{pods: 0, cpu: 0}
			got := -1
			for tick := range 20 * 20 {
				if tick%40 == 0 {
					c.refuse(forged, budget.Amounts{pods: amounts[0]})
					c.refuse(web, budget.Amounts{pods: amounts[1]})
				}
				if c.pass(); c.rows[web].Counted[pods] >= amounts[1] && got < 0 {
					got = tick
				}
			}
			if got < 0 || got > 8*20 {
				t.Errorf("%s: after %d of 400 passes web has room for %d; shares %d and %d", name, got, amounts[1], c.rows[web].Spec[pods],
					c.rows[forged].Spec[pods])
			}
		}
	})
}
