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
	outboxEvents = gauge("outbox_events", "Changes that the warehouse doesn't have yet.")
	oldestWaits  = gauge("oldest_pending_seconds", "How long the oldest of them has waited.")
	lastSuccess  = gauge("last_success_timestamp_seconds", "When the outbox was emptied last.")
	watermark    = gauge("watermark_timestamp_seconds", "Until when all that the cluster showed is in the ledger.")
	heldRows     = gauge("held_ends", "Ends that are too many at once and wait for another comparison.")

	comparedMetric = gauge("last_diff_timestamp_seconds", "When cluster and ledger were compared last.")
	flushes        = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "warren_billing_flush_total", Help: "Attempts to empty the outbox, by result."},
		[]string{"result"})
	flushSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "warren_billing_flush_duration_seconds",
		Help: "How long an attempt took, comparison included.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 8)})
	flushedRows    = counter("rows_total", "Rows that were new to the ledger.")
	parkedRows     = counter("parked_total", "Changes that the ledger refused as data.")
	driftRows      = counter("drift_rows_total", "Changes that only a comparison after the first found: the watches missed them.")
	outboxFailures = counter("outbox_failures_total", "Attempts to put changes into the outbox that failed.")
)

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: "warren_billing_" + name, Help: help})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "warren_billing_" + name, Help: help})
}

func init() {
	metrics.Registry.MustRegister(outboxEvents, oldestWaits, lastSuccess, watermark, heldRows, comparedMetric, flushes, flushSeconds, flushedRows, parkedRows,
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
