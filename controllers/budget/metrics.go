package budget

import (
	"github.com/prometheus/client_golang/prometheus"
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

// gauges reports the conditions of all budgets whenever Prometheus collects them.
type gauges struct{ reports *reports }

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) { to <- conditionsDesc }

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	for reason, n := range g.reports.countReasons() {
		to <- prometheus.MustNewConstMetric(conditionsDesc, prometheus.GaugeValue, float64(n), string(reason))
	}
}
