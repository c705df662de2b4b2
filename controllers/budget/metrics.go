package budget

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_budget_writes_total", Help: "Requests that write the shares of budgets; result is ok or error.",
	}, []string{"verb", "result"})
	refusals = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "warren_budget_refusals_total", Help: "Events that tell that a namespace was refused something beyond its share.",
	})
	rooms = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_budget_rooms_total", Help: "Creations that webhook room was asked about; result is fits, raised, full, late, crowded or " +
			"unlimited.",
	}, []string{"result"})
	conditionsDesc = prometheus.NewDesc("warren_budget_conditions", "Tenants with a budget, by the reason of condition BudgetEnforced.",
		[]string{"reason"}, nil)
)

func init() { metrics.Registry.MustRegister(writes, refusals, rooms) }

var (
	hardDesc = prometheus.NewDesc("warren_budget_hard", "What the budget of a tenant allows. Only with feature gate BudgetMetrics.",
		[]string{"tenant", "resource"}, nil)
	usedDesc = prometheus.NewDesc("warren_budget_used", "What is used of the budget of a tenant. Only with feature gate BudgetMetrics.",
		[]string{"tenant", "resource"}, nil)
)

// gauges reports the conditions of all budgets whenever Prometheus collects them and, if amounts is set, the amounts of tenants' budgets.
type gauges struct {
	reports *reports
	amounts bool
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{conditionsDesc, hardDesc, usedDesc} {
		to <- one
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	if g.amounts {
		g.reports.collectAmounts(to)
	}
	for reason, n := range g.reports.countReasons() {
		to <- prometheus.MustNewConstMetric(conditionsDesc, prometheus.GaugeValue, float64(n), string(reason))
	}
}

func (r *reports) collectAmounts(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for tenant, is := range r.budgets {
		for desc, amounts := range map[*prometheus.Desc]corev1.ResourceList{hardDesc: is.Hard, usedDesc: is.Used} {
			for key, amount := range amounts {
				to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, amount.AsApproximateFloat64(), tenant, string(key))
			}
		}
	}
}
