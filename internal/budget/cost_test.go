package budget_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/warren-tenancy/warren/internal/budget"
)

// fullTree is a tree in which a sudoer writes eight HierarchicalResourceQuotas of 16 keys into each namespace. In a chain, each namespace is
// below all before it.
func fullTree(namespaces int, chain bool) (limits []budget.Limit, rows []budget.Row) {
	keys, share, used := budget.Amounts{}, budget.Amounts{}, budget.Amounts{}
	for i := range 16 {
		key := corev1.ResourceName(fmt.Sprintf("count/widgets%d.example.com", i))
		keys[key], share[key], used[key] = 1000, 100, 10
	}
	var above []int
	for n := range namespaces {
		row := budget.Row{Namespace: fmt.Sprint("ns-", n), Spec: share, Counted: share, Used: used}
		if !chain {
			above = nil
		}
		for range 8 {
			above = append(above, len(limits))
			limits = append(limits, budget.Limit{Name: "hrq", Hard: keys})
		}
		row.Under = append(row.Under, above...)
		rows = append(rows, row)
	}
	return limits, rows
}

// wideTree is a tree of namespaces that have a limit of one resource each, below that of the tenant.
func wideTree(namespaces int) (limits []budget.Limit, rows []budget.Row) {
	limits = []budget.Limit{{Name: "tenant", Hard: budget.Amounts{pods: 100_000}}}
	for n := range namespaces {
		one := row(fmt.Sprint("ns-", n), 10, 5)
		one.Under = []int{0, len(limits)}
		rows, limits = append(rows, one), append(limits, budget.Limit{Name: "hrq", Hard: budget.Amounts{pods: 100}})
	}
	return limits, rows
}

// least is the shortest of some plans, which other work on the machine disturbs least.
func least(limits []budget.Limit, rows []budget.Row) time.Duration {
	shortest := time.Hour
	for range 7 {
		began := time.Now()
		budget.Plan(limits, rows, nil, noon)
		shortest = min(shortest, time.Since(began))
	}
	return shortest
}

func TestAPlanCostsAsMuchAsItsTreeIsLarge(t *testing.T) {
	t.Run("QUOTA-53 a plan of eight times as many namespaces, each full of limits, costs about eight times as much", func(t *testing.T) {
		for name, tree := range map[string]func(int) ([]budget.Limit, []budget.Row){
			"full": func(n int) ([]budget.Limit, []budget.Row) { return fullTree(n, false) }, "wide": func(n int) ([]budget.Limit, []budget.Row) {
				return wideTree(16 * n)
			},
		} {
			small, large := least(tree(25)), least(tree(200))
			if ratio := float64(large) / float64(small); ratio > 32 {
				t.Errorf("%s: 8 times as many namespaces cost %.0f times as much: %s and %s", name, ratio, small, large)
			}
		}
	})
}

func benchmarkPlan(b *testing.B, limits []budget.Limit, rows []budget.Row) {
	for b.Loop() {
		budget.Plan(limits, rows, nil, noon)
	}
}

// At most 20 ms.
func BenchmarkPlanOf4000NamespacesWithALimitEach(b *testing.B) {
	limits, rows := wideTree(4000)
	benchmarkPlan(b, limits, rows)
}

// At most 100 ms.
func BenchmarkPlanOf300NamespacesFullOfLimits(b *testing.B) {
	limits, rows := fullTree(300, false)
	benchmarkPlan(b, limits, rows)
}

// More than any tree may ask for: see mostKeys in controllers/budget.
func BenchmarkPlanOfAChainFullOfLimits(b *testing.B) {
	limits, rows := fullTree(100, true)
	benchmarkPlan(b, limits, rows)
}
