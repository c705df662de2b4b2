package copies

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
)

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_propagation_writes_total", Help: "Requests that write copies; code is the status code of the answer, 0 without an answer.",
	}, []string{"group", "kind", "verb", "code"})
	reads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_propagation_reads_total", Help: "Reads of single objects; of is source, copy or namespace.",
	}, []string{"group", "kind", "of"})
	drift = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_propagation_drift_total",
		Help: "Copies that another user changed and the operator restored; found is watch, start or scrub.",
	}, []string{"group", "kind", "found"})
	scrubbed = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warren_propagation_scrub_last_timestamp_seconds", Help: "When all copies were last compared in full with their sources.",
	}, []string{"group", "kind"})
	fanoutSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "warren_propagation_fanout_seconds", Help: "Time from the event of a source to the last answer about its copies.",
		Buckets: durations,
	}, []string{"group", "kind", "verb"})
	rightsBeforeRails = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "warren_propagation_rights_before_rails_total", Help: "RoleBindings that were copied to a namespace, and roots whose users got " +
			"rights, although copies of other kinds were still missing there after 10 s.",
	})
	settleSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "warren_hierarchy_settle_seconds",
		Help:    "Time from the event of a namespace with another parent to the last answer about copies in it and below.",
		Buckets: durations,
	})
)

// durations are the buckets, in seconds, of histograms for work of one request to thousands of requests.
var durations = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func init() {
	metrics.Registry.MustRegister(writes, reads, drift, scrubbed, fanoutSeconds, rightsBeforeRails, settleSeconds)
}

// countWrite counts a write by the status code of its answer; code 0 means that there was no answer.
func countWrite(slot copies.Slot, verb string, err error) {
	code := 200
	if err != nil {
		code = 0
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			code = int(status.Status().Code)
		}
	}
	writes.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, verb, strconv.Itoa(code)).Inc()
}

// countRead counts a read of a single object: of a source, a copy or a namespace.
func countRead(slot copies.Slot, of string) {
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, of).Inc()
}

var verbNames = map[copies.Verb]string{copies.Create: http.MethodPost, copies.Update: http.MethodPut, copies.Delete: http.MethodDelete}

// recordMetrics takes in an Output that is for metrics.
func recordMetrics(output copies.Output) {
	switch one := output.(type) {
	case copyengine.CopyRepaired:
		drift.WithLabelValues(one.Kind.Group, one.Kind.Kind, string(one.Found)).Inc()
	case copyengine.RightsBeforeRails:
		rightsBeforeRails.Inc()
	case copyengine.FanoutEnded:
		fanoutSeconds.WithLabelValues(one.Kind.Group, one.Kind.Kind, verbNames[one.Verb]).Observe(time.Since(one.Since).Seconds())
	case copyengine.MoveEnded:
		settleSeconds.Observe(time.Since(one.Since).Seconds())
	}
}

// gauges reports, whenever Prometheus asks, how many sources, copies and so on the State has.
type gauges struct {
	runner                                                                    *Runner
	sources, copies, conflicts, rejected, unobserved, limited, pending, kinds *prometheus.Desc
}

func newGauges(r *Runner) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &gauges{
		runner:    r,
		sources:   desc("warren_propagation_sources", "Sources: objects that are propagated.", "group", "kind"),
		copies:    desc("warren_propagation_copies", "Copies that exist.", "group", "kind"),
		conflicts: desc("warren_propagation_conflicts", "Copies that cannot be written, because another object has the name.", "group", "kind"),
		rejected:  desc("warren_propagation_rejected", "Copies that the API server refuses.", "group", "kind"),
		unobserved: desc("warren_propagation_unobserved", "Namespaces in which a kind of scope Namespaces or Auto cannot be seen. state is "+
			"forbidden, notserved, degraded or pending. forbidden: a right is missing. notserved: the API server does not serve the kind. "+
			"degraded: lists or watches fail. pending: informers.maxInformers or informers.maxNamespaces is reached.", "group", "kind", "state"),
		limited: desc("warren_propagation_limited", "Copies that limits.copies or limits.bytes of a tree do not allow; condition Propagated of "+
			"the root names them.", "group", "kind"),
		pending: desc("warren_propagation_pending_actions", "Keys that wait in the queue."),
		kinds: desc("warren_config_kind", "For each configured kind, 1 for its state and 0 for the others: syncing, active, pending, "+
			"forbidden, degraded. pending: not served. degraded: not listed within informers.degradedAfter, or informers.maxInformers "+
			"leaves no room.", "group", "kind", "state"),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.sources, g.copies, g.conflicts, g.rejected, g.unobserved, g.limited, g.pending, g.kinds} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	send(g.pending, g.runner.CountWaiting())
	var kinds []copyengine.KindCounts
	g.runner.Read(func(s *copyengine.State) { kinds = s.CountKinds() })
	for _, one := range kinds {
		group, kind := one.Kind.Group, one.Kind.Kind
		send(g.sources, one.Sources, group, kind)
		send(g.copies, one.Copies, group, kind)
		send(g.conflicts, one.Conflicts, group, kind)
		send(g.rejected, one.Rejected, group, kind)
		send(g.limited, one.Limited, group, kind)
		for state, namespaces := range one.Unseen {
			send(g.unobserved, namespaces, group, kind, strings.ToLower(state))
		}
		for _, state := range copies.KindStates {
			on := 0
			if state == one.State {
				on = 1
			}
			send(g.kinds, on, group, kind, string(state))
		}
	}
}
