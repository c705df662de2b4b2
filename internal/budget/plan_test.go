package budget_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/warren-tenancy/warren/internal/budget"
)

var (
	seed  = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random steps")
	steps = flag.Int("steps", 100_000, "how many random steps")
)

// cluster is a model of the API server and of Kubernetes' controller of quotas.
type cluster struct {
	random   *rand.Rand
	limits   []budget.Limit
	rows     []budget.Row
	refusals map[string]budget.Refusal
	now      time.Time
	next     int
}

const pods, cpu = corev1.ResourcePods, corev1.ResourceRequestsCPU

func newCluster(seed uint64) *cluster {
	random := rand.New(rand.NewPCG(seed, 0))
	c := &cluster{random: random, refusals: map[string]budget.Refusal{}, now: time.Unix(0, 0)}
	c.limits = []budget.Limit{{Name: "tenant", Hard: budget.Amounts{pods: 40, cpu: 20_000}}, {Name: "team", Hard: budget.Amounts{pods: 12}}}
	for range 6 {
		c.addNamespace()
	}
	return c
}

func (c *cluster) addNamespace() {
	c.next++
	row := budget.Row{Namespace: fmt.Sprintf("ns-%03d", c.next), Under: []int{0}}
	if c.random.IntN(2) == 0 {
		row.Under = append(row.Under, 1)
	}
	c.rows = append(c.rows, row)
}

// create admits a pod as the API server does: by what is counted. Where a quota isn't counted yet, nobody has rights.
func (c *cluster) create(row *budget.Row) {
	if !row.IsCounted() || row.Ending {
		return
	}
	pod := budget.Amounts{pods: 1}
	if _, limited := row.Counted[cpu]; limited {
		pod[cpu] = 100 * (1 + c.random.Int64N(20))
	}
	for key, amount := range pod {
		if row.Used[key]+amount > row.Counted[key] {
			earlier := c.refusals[row.Namespace]
			c.refusals[row.Namespace] = budget.Refusal{At: c.now, Requested: pod, Again: c.now.Sub(earlier.At) < budget.RefusedBefore}
			return
		}
	}
	for key, amount := range pod {
		row.Used[key] += amount
	}
}

func (c *cluster) count(row *budget.Row) {
	if row.Spec == nil {
		row.Counted, row.Used = nil, nil
		return
	}
	row.Counted = maps.Clone(row.Spec)
	used := budget.Amounts{}
	for key := range row.Spec {
		used[key] = row.Used[key]
	}
	row.Used = used
}

func (c *cluster) change() {
	c.now = c.now.Add(time.Duration(c.random.IntN(2000)) * time.Millisecond)
	at := c.random.IntN(len(c.rows))
	row := &c.rows[at]
	switch c.random.IntN(40) {
	case 0:
		if len(c.rows) < 15 {
			c.addNamespace()
		}
	case 1:
		if len(c.rows) > 2 {
			c.rows = slices.Delete(c.rows, at, at+1)
		}
	case 2:
		row.Fixed = !row.Fixed
	case 3:
		for key, used := range row.Used {
			row.Used[key] = used / 2
		}
	case 12: // it terminates, or another one takes its name
		row.Ending = c.random.IntN(4) == 0
	case 4, 5, 6, 7, 8, 9, 10, 11:
		c.count(row)
	default:
		c.create(row)
	}
}

// apply carries out some of the writes: the others fail, or the operator is killed before them.
func (c *cluster) apply(shares []budget.Share, always bool) {
	for _, share := range shares {
		if !always && c.random.IntN(4) == 0 {
			continue
		}
		for i := range c.rows {
			if c.rows[i].Namespace == share.Namespace {
				c.rows[i].Spec = share.Hard
			}
		}
	}
}

// promises returns the sum of all promises below a limit.
func (c *cluster) promises(limit int, key corev1.ResourceName) (sum int64) {
	for _, row := range c.rows {
		if slices.Contains(row.Under, limit) {
			sum += max(row.Spec[key], row.Counted[key], row.Used[key])
		}
	}
	return sum
}

func (c *cluster) check(t *testing.T, step int) {
	t.Helper()
	for i, limit := range c.limits {
		for key, hard := range limit.Hard {
			if sum := c.promises(i, key); sum > hard {
				t.Fatalf("step %d: %s of %s: %d are promised of %d", step, key, limit.Name, sum, hard)
			}
		}
	}
}

func (c *cluster) plan() []budget.Share { return budget.Plan(c.limits, c.rows, c.refusals, c.now) }

func TestThePlanPromisesNoMoreThanALimit(t *testing.T) {
	t.Logf("seed %d", *seed)
	c := newCluster(*seed)
	for step := range *steps {
		c.change()
		shares := c.plan()
		for _, share := range shares {
			row := c.rows[slices.IndexFunc(c.rows, func(r budget.Row) bool { return r.Namespace == share.Namespace })]
			for key, amount := range share.Hard {
				if amount < 0 || amount < row.Spec[key] && amount < row.Used[key] {
					t.Fatalf("step %d: %s of %s: a share of %d, %d used", step, key, share.Namespace, amount, row.Used[key])
				}
			}
			if row.Fixed {
				t.Fatalf("step %d: the share of %s changes, where nothing may be written", step, share.Namespace)
			}
		}
		c.apply(shares, false)
		c.check(t, step)
	}
}

func TestThePlanSettles(t *testing.T) {
	t.Logf("seed %d", *seed)
	c := newCluster(*seed)
	for step := range *steps / 50 {
		for range 20 {
			c.change()
			c.apply(c.plan(), false)
		}
		for pass := 0; ; pass++ {
			shares := c.plan()
			if len(shares) == 0 {
				break
			}
			if pass == 8 {
				t.Fatalf("step %d: still changes after %d passes: %v", step, pass, shares)
			}
			c.apply(shares, true)
			for i := range c.rows {
				c.count(&c.rows[i])
			}
		}
	}
}
