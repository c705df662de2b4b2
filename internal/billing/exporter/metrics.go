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
	outboxEvents = gauge("warren_billing_outbox_events", "Changes that the warehouse does not have yet.")
	oldestWaits  = gauge("warren_billing_oldest_pending_seconds",
		"How long the oldest change that the warehouse does not have yet has waited.")
	lastSuccess = gauge("warren_billing_last_success_timestamp_seconds", "When the outbox was last emptied.")
	watermark   = gauge("warren_billing_watermark_timestamp_seconds",
		"Up to this time, every change that the exporter saw in the cluster is in the ledger.")
	heldRows = gauge("warren_billing_held_ends", "Ends of periods that wait for a second comparison, because there are too many at once.")

	comparedMetric = gauge("warren_billing_last_diff_timestamp_seconds", "When the cluster and the ledger were last compared.")
	flushes        = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "warren_billing_flush_total",
		Help: "Attempts to empty the outbox; result is success, or the reason of condition BillingExported."},
		[]string{"result"})
	flushSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "warren_billing_flush_duration_seconds",
		Help: "Duration of an attempt to empty the outbox, comparison included.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 8)})
	flushedRows    = counter("warren_billing_rows_total", "Rows that were new to the ledger.")
	parkedRows     = counter("warren_billing_parked_total", "Changes that the ledger refused because of their data.")
	driftRows      = counter("warren_billing_drift_rows_total", "Changes that the watches missed and a later comparison found.")
	outboxFailures = counter("warren_billing_outbox_failures_total",
		"Failed attempts to put changes into the outbox, for example because the disk is full.")
)

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func init() {
	metrics.Registry.MustRegister(outboxEvents, oldestWaits, lastSuccess, watermark, heldRows, comparedMetric, flushes, flushSeconds,
		flushedRows, parkedRows,
		driftRows, outboxFailures)
}

func resultLabel(trouble billing.Trouble) string { return cmp.Or(string(trouble), "success") }

func measureOutbox(events int, since, now time.Time) {
	outboxEvents.Set(float64(events))
	if events == 0 {
		oldestWaits.Set(0)
		return
	}
	oldestWaits.Set(now.Sub(since).Seconds())
}
