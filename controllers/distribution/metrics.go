package distribution

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_distribution_writes_total", Help: "Writes of distributed copies, by verb and by what became of them.",
	}, []string{"verb", "result"})
	rolloutSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "warren_distribution_rollout_seconds", Help: "From a change of a ResourceDistribution until it is ready.",
		Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200},
	})
	copies = prometheus.NewDesc("warren_distribution_copies", "Targets of a ResourceDistribution by what stands there.", []string{"distribution", "state"}, nil)
	loops  = prometheus.NewDesc("warren_distribution_drift_loops", "Copies that somebody changes in a loop.", []string{"distribution"}, nil)
)

func init() { metrics.Registry.MustRegister(writes, rolloutSeconds) }

func count(verb string, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	writes.WithLabelValues(verb, result).Inc()
}

// gauges report what the statuses say.
type gauges struct{ *Controller }

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) {
	to <- copies
	to <- loops
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, r := range g.runs {
		s := &r.reported
		for state, n := range map[string]int32{"current": s.Current, "outdated": s.Outdated, "missing": s.Missing, "conflict": s.Conflicts, "failed": s.Failed} {
			to <- prometheus.MustNewConstMetric(copies, prometheus.GaugeValue, float64(n), name, state)
		}
		if r.Template != nil {
			to <- prometheus.MustNewConstMetric(loops, prometheus.GaugeValue, float64(g.repairs.Loops(r.Template.Slot(""), time.Now(), g.Timing.LoopWindow)), name)
		}
	}
}
