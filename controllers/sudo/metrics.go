package sudo

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/sudo"
)

var (
	waitSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "warren_sudo_wait_seconds", Help: "Time from a SudoRequest to its grant, with that of its approvers.",
		Buckets: []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600},
	})
	endLagSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "warren_sudo_end_lag_seconds", Help: "Time from endTime of a SudoRequest until the operator saw that the right is gone.",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
	})
	breakGlass = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "warren_sudo_break_glass_total", Help: "SudoRequests that were granted without approval.",
	})
	requestsDesc = prometheus.NewDesc("warren_sudo_requests",
		"SudoRequests, also finished ones that are kept, by the reason of condition Active.", []string{"reason"}, nil)
)

func init() { metrics.Registry.MustRegister(waitSeconds, endLagSeconds, breakGlass) }

// countTransition counts what the write of a status means; was is nil for the first status.
func countTransition(f *sudo.Facts, was, now *metav1.Condition, is *v1alpha1.SudoRequest) {
	wasGranted := was != nil && was.Status == metav1.ConditionTrue
	switch {
	case now.Reason == string(v1alpha1.ReasonGranted) && !wasGranted:
		waitSeconds.Observe(max(0, f.Now.Sub(is.CreationTimestamp.Time)).Seconds())
		if is.Spec.BreakGlass {
			breakGlass.Inc()
		}
	case now.Reason == string(v1alpha1.ReasonTimeOver) && wasGranted && is.Status.EndTime != nil:
		endLagSeconds.Observe(max(time.Duration(0), f.Now.Sub(is.Status.EndTime.Time)).Seconds())
	}
}

// gauges reports how many requests have which reason, whenever Prometheus collects them.
type gauges struct{ known *known }

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) { to <- requestsDesc }

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	for reason, n := range g.known.countReasons() {
		to <- prometheus.MustNewConstMetric(requestsDesc, prometheus.GaugeValue, float64(n), reason)
	}
}
