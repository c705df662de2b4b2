package exporter

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/billing"
)

// No metric carries the name of a tenant or a namespace.
var (
	pendingChanges = newGauge("warren_billing_pending_changes", "Changes that the warehouse does not have yet.")
	oldestWaits    = newGauge("warren_billing_oldest_pending_seconds",
		"How long the oldest change that the warehouse does not have yet has waited.")
	lastSuccess = newGauge("warren_billing_last_success_timestamp_seconds", "When the ledger last had all changes that the exporter saw.")
	watermark   = newGauge("warren_billing_watermark_timestamp_seconds",
		"Up to this time, every change that the exporter saw in the cluster is in the ledger.")
	heldRows = newGauge("warren_billing_held_ends", "Ends of periods that wait for half a resyncInterval, because there are too many at once.")

	comparedMetric = newGauge("warren_billing_last_diff_timestamp_seconds", "When the cluster and the ledger were last compared.")
	flushes        = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "warren_billing_flush_total",
		Help: "Attempts to write what the ledger lacks; result is success, or the reason of condition BillingExported."},
		[]string{"result"})
	flushSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "warren_billing_flush_duration_seconds",
		Help: "Duration of an attempt to write what the ledger lacks, comparison included.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 8)})
	writtenRows = newCounter("warren_billing_rows_total", "Rows that were new to the ledger.")
	refusedRows = newCounter("warren_billing_refused_total", "Changes that the ledger refused because of their data.")
	driftRows   = newCounter("warren_billing_drift_rows_total", "Changes that the watches missed and a later comparison found.")
)

func newGauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func newCounter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func init() {
	metrics.Registry.MustRegister(pendingChanges, oldestWaits, lastSuccess, watermark, heldRows, comparedMetric, flushes, flushSeconds,
		writtenRows, refusedRows, driftRows)
}

func resultLabel(trouble billing.Trouble) string { return cmp.Or(string(trouble), "success") }

func measureBacklog(b *backlog, now time.Time) {
	pendingChanges.Set(float64(b.changes))
	heldRows.Set(float64(b.held))
	if b.changes == b.held { // ends that are held back wait on purpose
		oldestWaits.Set(0)
		return
	}
	oldestWaits.Set(now.Sub(b.oldest).Seconds())
}
