package propagation

import (
	"errors"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_propagation_writes_total", Help: "Writes of copies, by what the API server answered.",
	}, []string{"group", "kind", "verb", "code"})
	reads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_propagation_reads_total", Help: "Reads of single objects.",
	}, []string{"group", "kind", "of"})
	drift = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_propagation_drift_total", Help: "Copies that somebody changed and that were put back.",
	}, []string{"group", "kind", "found"})
	scrubbed = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warren_propagation_scrub_last_timestamp_seconds", Help: "When all copies were last compared whole with their sources.",
	}, []string{"group", "kind"})
	fanoutSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "warren_propagation_fanout_seconds", Help: "From the event of a source to the last answer about its copies.",
		Buckets: durations,
	}, []string{"group", "kind", "verb"})
	rightsBeforeRails = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "warren_propagation_rights_before_rails_total", Help: "RoleBindings that were copied to a namespace, and roots whose users got rights, although copies of other kinds could not be made there.",
	})
	settleSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "warren_hierarchy_settle_seconds", Help: "From the event of a namespace with another parent to the last answer about copies in it and below.",
		Buckets: durations,
	})
)

// durations are the buckets, in seconds, of histograms for work of one request to thousands of requests.
var durations = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func init() {
	metrics.Registry.MustRegister(writes, reads, drift, scrubbed, fanoutSeconds, rightsBeforeRails, settleSeconds)
}

// count counts a write by the status code of its answer; code 0 stands for no answer.
func count(slot propagate.Slot, verb string, err error) {
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

// gauges reports the size of the engine's tables when it is asked.
type gauges struct {
	engine                                                                    *Engine
	sources, copies, conflicts, rejected, unobserved, limited, pending, kinds *prometheus.Desc
}

func newGauges(e *Engine) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &gauges{
		engine:     e,
		sources:    desc("warren_propagation_sources", "Objects that are propagated.", "group", "kind"),
		copies:     desc("warren_propagation_copies", "Copies.", "group", "kind"),
		conflicts:  desc("warren_propagation_conflicts", "Copies that an unrelated object keeps out.", "group", "kind"),
		rejected:   desc("warren_propagation_rejected", "Copies that the API server refuses.", "group", "kind"),
		unobserved: desc("warren_propagation_unobserved", "Namespaces in which a kind that is watched namespace by namespace can't be seen, by why.", "group", "kind", "state"),
		limited:    desc("warren_propagation_limited", "Copies that the limits of a tree keep from being written.", "group", "kind"),
		pending:    desc("warren_propagation_pending_actions", "Keys that wait to be looked at."),
		kinds:      desc("warren_config_kind", "State of the configured kinds.", "group", "kind", "state"),
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
	e := g.engine
	send := func(d *prometheus.Desc, value int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	send(g.pending, e.queue.Len())
	inTrouble, held := e.troubles.count(), e.facts.countHeld()
	for _, run := range e.kinds.list() {
		gk := run.kind.GroupKind()
		sources, copies := e.facts.countObjects(gk)
		send(g.sources, sources, gk.Group, gk.Kind)
		send(g.copies, copies, gk.Group, gk.Kind)
		send(g.conflicts, inTrouble[kindReason{gk, v1alpha1.ReasonConflict}], gk.Group, gk.Kind)
		send(g.rejected, inTrouble[kindReason{gk, v1alpha1.ReasonRejected}], gk.Group, gk.Kind)
		send(g.limited, held[gk.Group][gk.Kind], gk.Group, gk.Kind)
		for state, namespaces := range e.kinds.countUnseen(run) {
			send(g.unobserved, namespaces, gk.Group, gk.Kind, strings.ToLower(string(state)))
		}
		state := e.kinds.stateOf(gk)
		for _, one := range kindStates {
			on := 0
			if one == state {
				on = 1
			}
			send(g.kinds, on, gk.Group, gk.Kind, string(one))
		}
	}
}

// kindReason is the key by which troubles are counted for metrics.
type kindReason struct {
	kind   schema.GroupKind
	reason v1alpha1.Reason
}
