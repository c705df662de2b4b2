package access

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/grants"
)

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_access_writes_total",
		Help: "Requests that write access objects; result is ok, the API server's reason such as Forbidden or Conflict, or error without one.",
	}, []string{"kind", "verb", "result"})
	conflicts = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warren_access_conflicts",
		Help: "Access objects that cannot be written, because another object has the name.",
	}, []string{"kind"})
	revocationSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "warren_access_revocation_seconds",
		Help:    "Time from the event on an LNamespace to the write that revokes the right of a subject that left a list.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	})
	sudoMode = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warren_sudo_mode",
		Help: "1 for the mode of sudo that the configuration sets, Legacy or Constrained, 0 for the other one.",
	}, []string{"mode"})
	boundElsewhere = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "warren_sudo_groups_bound_elsewhere",
		Help: "Bindings of groups or users of sudo that are not the operator's and are older than the first grant, which waits for their " +
			"deletion in mode Legacy.",
	})
	objectCount = &objectCollector{desc: prometheus.NewDesc(
		"warren_access_objects", "Access objects without copies, by kind and by what they grant. Each ClusterRoleBinding adds to the cost of "+
			"every request.", []string{"kind", "access"}, nil)}
)

func init() {
	metrics.Registry.MustRegister(writes, conflicts, revocationSeconds, sudoMode, boundElsewhere, objectCount)
}

// objectCollector counts the access objects in the cache at each scrape.
type objectCollector struct {
	desc   *prometheus.Desc
	reader atomic.Pointer[client.Client] // nil until a manager is set up
}

// Describe implements prometheus.Collector.
func (c *objectCollector) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements prometheus.Collector. It reports nothing while the cache isn't synced.
func (c *objectCollector) Collect(out chan<- prometheus.Metric) {
	reader := c.reader.Load()
	if reader == nil {
		return
	}
	counts := map[[2]string]float64{} // by kind and access
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}} {
		if !apianswer.ListCached(*reader, list) {
			return
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(grants.Object)
			if object.GetLabels()[v1alpha1.LabelInheritedFrom] == "" {
				counts[[2]string{grants.KeyOf(object).Kind, object.GetLabels()[v1alpha1.LabelAccess]}]++
			}
			return nil
		})
	}
	for labels, n := range counts {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, n, labels[:]...)
	}
}

// obstacles remembers, by tenant, the access objects that the operator can't write because a foreign object has the
// name.
type obstacles struct {
	mu       sync.Mutex
	byTenant map[string]map[grants.Key]bool
}

func (o *obstacles) ofTenant(tenant string) map[grants.Key]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byTenant[tenant]
}

func (o *obstacles) setKeys(tenant string, keys []grants.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.byTenant[tenant] {
		conflicts.WithLabelValues(key.Kind).Dec()
	}
	delete(o.byTenant, tenant)
	if len(keys) == 0 {
		return
	}
	found := map[grants.Key]bool{}
	for _, key := range keys {
		found[key] = true
	}
	for key := range found {
		conflicts.WithLabelValues(key.Kind).Inc()
	}
	if o.byTenant == nil {
		o.byTenant = map[string]map[grants.Key]bool{}
	}
	o.byTenant[tenant] = found
}

// foreignBindings counts the foreign bindings of each tenant's group of sudoers that stop its first grant (see groups).
type foreignBindings struct {
	mu       sync.Mutex
	byTenant map[string]int
}

func (s *foreignBindings) setCount(tenant string, bindings int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	boundElsewhere.Add(float64(bindings - s.byTenant[tenant]))
	delete(s.byTenant, tenant)
	if bindings == 0 {
		return
	}
	if s.byTenant == nil {
		s.byTenant = map[string]int{}
	}
	s.byTenant[tenant] = bindings
}
