package distribution

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/distribute"
)

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_distribution_writes_total", Help: "Requests that write distributed copies; result is ok or error.",
	}, []string{"verb", "result"})
	rolloutSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "warren_distribution_rollout_seconds", Help: "Time from a change of a ResourceDistribution until it is Ready.",
		Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200},
	})
	copiesDesc = prometheus.NewDesc("warren_distribution_copies", "Targets of a ResourceDistribution; state is current, outdated, missing, "+
		"conflict or failed.", []string{"distribution", "state"}, nil)
	loopsDesc = prometheus.NewDesc("warren_distribution_drift_loops", "Distributed copies that another program changes again and again.",
		[]string{"distribution"}, nil)
)

func init() { metrics.Registry.MustRegister(writes, rolloutSeconds) }

// gauges reports the numbers of the State whenever Prometheus collects them.
type gauges struct{ runner *Runner }

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) {
	to <- copiesDesc
	to <- loopsDesc
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	var all []distribute.Counts
	g.runner.Read(func(s *distribute.State) { all = s.CountAll(time.Now()) })
	for _, one := range all {
		s := one.Status
		for state, n := range map[string]int32{"current": s.Current, "outdated": s.Outdated, "missing": s.Missing, "conflict": s.Conflicts,
			"failed": s.Failed} {
			to <- prometheus.MustNewConstMetric(copiesDesc, prometheus.GaugeValue, float64(n), one.Distribution, state)
		}
		to <- prometheus.MustNewConstMetric(loopsDesc, prometheus.GaugeValue, float64(one.Loops), one.Distribution)
	}
}
