package watchset

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// metrics are the Prometheus metrics of a Set. Gauges are counted when they are collected; no label names a namespace,
// an object or an owner.
type metrics struct {
	set         *Set
	transitions *prometheus.CounterVec
	starts      *prometheus.CounterVec
	reviews     *prometheus.CounterVec
	pokes       *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
}

var (
	informersDesc = prometheus.NewDesc("watchset_informers",
		"Informers by state, such as Synced, Forbidden or Degraded; scope is cluster, namespace or object.",
		[]string{"group", "resource", "form", "scope", "state"}, nil)
	leasesDesc = prometheus.NewDesc("watchset_leases", "Leases on informers: how many owners need an informer.",
		[]string{"group", "resource"}, nil)
	objectsDesc = prometheus.NewDesc("watchset_objects", "Objects that informers hold.", []string{"group", "resource"}, nil)
	limitedDesc = prometheus.NewDesc("watchset_limited", "Informers that wait because MaxInformers or MaxNamespaces is reached.", nil, nil)
)

func newMetrics(s *Set) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &metrics{
		set:         s,
		transitions: counter("watchset_transitions_total", "Changes of informers' states.", "group", "resource", "from", "to"),
		starts:      counter("watchset_starts_total", "Starts of informers.", "group", "resource"),
		reviews: counter("watchset_access_reviews_total",
			"Questions to the API server about the rights of this program; result is allowed, denied or error.", "result"),
		pokes: counter("watchset_pokes_total", "Hints that rights or CRDs may have changed; kind says what gave the hint.", "kind"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "watchset_sync_seconds", Help: "Time from the start of an informer to Synced.", Buckets: prometheus.ExponentialBuckets(0.01, 4, 8),
		}, []string{"group", "resource"}),
	}
}

func (m *metrics) countTransition(p *part, from, to State) {
	m.transitions.WithLabelValues(p.selection.targetResource().Group, p.selection.targetResource().Resource, string(from), string(to)).Inc()
}

func (m *metrics) countRunStart(p *part) {
	if !p.selection.isWatchedForSet() {
		m.starts.WithLabelValues(p.selection.targetResource().Group, p.selection.targetResource().Resource).Inc()
	}
}

func (m *metrics) observeSyncTime(p *part, took time.Duration) {
	if !p.selection.isWatchedForSet() {
		m.seconds.WithLabelValues(p.selection.targetResource().Group, p.selection.targetResource().Resource).Observe(took.Seconds())
	}
}

// removeSeriesOf removes the series of gone's resource, and of the guess for its kind, unless another part of that
// resource is left. The caller holds the Set's lock.
func (m *metrics) removeSeriesOf(gone *part) {
	m.forgetResource(gone.selection.targetResource().GroupResource())
	if gone.selection.requestNamesKind() {
		m.forgetResource(m.set.firstTargetOf(gone.selection.key.view).resource.GroupResource())
	}
}

func (m *metrics) forgetResource(gone schema.GroupResource) {
	for _, p := range m.set.parts.all {
		if p.selection.targetResource().GroupResource() == gone {
			return
		}
	}
	of := prometheus.Labels{"group": gone.Group, "resource": gone.Resource}
	m.transitions.DeletePartialMatch(of)
	m.starts.DeletePartialMatch(of)
	m.seconds.DeletePartialMatch(of)
}

func (m *metrics) registeredCollectors() []prometheus.Collector {
	return []prometheus.Collector{m.transitions, m.starts, m.reviews, m.pokes, m.seconds}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{informersDesc, leasesDesc, objectsDesc, limitedDesc} {
		out <- desc
	}
	for _, c := range m.registeredCollectors() {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.emitGauges(func(desc *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	})
	for _, c := range m.registeredCollectors() {
		c.Collect(out)
	}
}

func (m *metrics) emitGauges(emit func(desc *prometheus.Desc, value int, labels ...string)) {
	c := census{informers: map[[5]string]int{}, leases: map[groupResource]int{}, objects: map[groupResource]int{}}
	m.set.lock.readUnderLock(func() { c.countPartsOfSet(m.set) })
	for labels, n := range c.informers {
		emit(informersDesc, n, labels[:]...)
	}
	for gr, n := range c.leases {
		emit(leasesDesc, n, gr.group, gr.resource)
		emit(objectsDesc, c.objects[gr], gr.group, gr.resource)
	}
	emit(limitedDesc, c.limited)
}

// census holds the values of a Set's gauges at one moment.
type census struct {
	informers       map[[5]string]int // by group, resource, form, scope and state
	leases, objects map[groupResource]int
	limited         int
}

type groupResource struct{ group, resource string }

// countPartsOfSet counts a Set's parts and leases. The caller holds the Set's lock.
func (c *census) countPartsOfSet(s *Set) {
	for _, p := range s.parts.all {
		gr := groupResource{p.selection.targetResource().Group, p.selection.targetResource().Resource}
		c.informers[[5]string{gr.group, gr.resource, p.selection.key.form.String(), p.selection.request.Scope.String(), string(p.state)}]++
		c.leases[gr] += len(p.demand.leases)
		c.objects[gr] += int(p.contents.count.Load())
		if p.isWaitingForRoom() {
			c.limited++
		}
	}
	for _, held := range s.owners.records {
		for _, l := range held.leases {
			c.limited += len(l.cover.waiting)
		}
	}
}
