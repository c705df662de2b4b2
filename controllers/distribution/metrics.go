package distribution

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/copies"
)

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_distribution_writes_total", Help: "Writes of distributed copies, by verb and by what became of them.",
	}, []string{"verb", "result"})
	rolloutSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "warren_distribution_rollout_seconds", Help: "From a change of a ResourceDistribution until it is ready.",
		Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200},
	})
	copiesDesc = prometheus.NewDesc("warren_distribution_copies", "Targets of a ResourceDistribution by what stands there.", []string{"distribution", "state"}, nil)
	loopsDesc  = prometheus.NewDesc("warren_distribution_drift_loops", "Copies that somebody changes in a loop.", []string{"distribution"}, nil)
)

func init() { metrics.Registry.MustRegister(writes, rolloutSeconds) }

func count(verb string, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	writes.WithLabelValues(verb, result).Inc()
}

// gauges are the metrics that are collected from the runs' last statuses.
type gauges struct {
	runs    *runs
	repairs *copies.Repairs
	window  time.Duration // Timing.LoopWindow
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) {
	to <- copiesDesc
	to <- loopsDesc
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	for _, r := range g.runs.list() {
		s, template := r.lastReport()
		for state, n := range map[string]int32{"current": s.Current, "outdated": s.Outdated, "missing": s.Missing, "conflict": s.Conflicts, "failed": s.Failed} {
			to <- prometheus.MustNewConstMetric(copiesDesc, prometheus.GaugeValue, float64(n), r.name, state)
		}
		if template != nil {
			to <- prometheus.MustNewConstMetric(loopsDesc, prometheus.GaugeValue, float64(g.repairs.Loops(template.Slot(""), time.Now(), g.window)), r.name)
		}
	}
}
