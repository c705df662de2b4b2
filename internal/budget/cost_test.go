package budget_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/warren-tenancy/warren/internal/budget"
)

// fullTree is a tree in which a sudoer writes eight HierarchicalResourceQuotas of 16 keys into each namespace. In a chain, each
// namespace is below all before it.
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

func TestAPlanCostsAsMuchAsItsTreeIsLarge(t *testing.T) {
	t.Run("QUOTA-53 a plan looks at each resource of a limit once for each namespace below it, however many limits a "+
		"tree has", func(t *testing.T) {
		for _, n := range []int{10, 80} {
			if got, want := budget.CountSteps(fullTree(n, false)), n*8*16; got != want {
				t.Errorf("%d namespaces with limits of their own: %d steps, want %d", n, got, want)
			}
			if got, want := budget.CountSteps(wideTree(n)), 2*n; got != want {
				t.Errorf("%d namespaces with a limit each, below that of the tenant: %d steps, want %d", n, got, want)
			}
		}
		limits, rows := fullTree(80, false)
		few := testing.AllocsPerRun(1, func() { budget.Plan(limits[:80], rows[:10], nil, noon) })
		if many := testing.AllocsPerRun(1, func() { budget.Plan(limits, rows, nil, noon) }); many > 12*few {
			t.Errorf("8 times as many namespaces allocate %v times, not %v", many, few)
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
