package hierarchy

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

var moves = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "warren_hierarchy_moves_total",
	Help: "Namespaces that got another parent; via is hierarchy, subnamespace, release or label, result is done, or refused for a request " +
		"that was not carried out.",
}, []string{"via", "result"})

func init() { metrics.Registry.MustRegister(moves) }

// countMoves counts the namespaces whose parent differs between the two snapshots of c.
func countMoves(c view.Change) {
	for _, name := range c.Namespaces {
		if via := movedVia(c.Old.Namespace(name), c.New.Namespace(name)); via != "" {
			moves.WithLabelValues(via, "done").Inc()
		}
	}
}

// movedVia returns by what a namespace got another parent; "" if its parent is the same, or the namespace is new, gone
// or replaced.
func movedVia(old, now *forest.Namespace) string {
	switch {
	case old == nil || now == nil || old.UID != now.UID || old.Parent() == now.Parent():
		return ""
	case now.Labels[v1alpha1.LabelReleased] != "" && old.Labels[v1alpha1.LabelReleased] == "":
		return "release"
	case old.Annotations[v1alpha1.AnnotationAppliedParent] != now.Annotations[v1alpha1.AnnotationAppliedParent]:
		return "hierarchy"
	case now.Bound():
		return "subnamespace"
	}
	return "label"
}

// troubled counts the bad conditions of the HierarchyConfigurations in the cache at each scrape.
type troubled struct{ client client.Reader }

var conditionsDesc = prometheus.NewDesc("warren_hierarchy_conditions", "Namespaces with a problem, by the condition of their "+
	"HierarchyConfiguration; type Halted counts the halted ones.", []string{"type", "reason"}, nil)

// Describe implements prometheus.Collector.
func (troubled) Describe(to chan<- *prometheus.Desc) { to <- conditionsDesc }

// Collect implements prometheus.Collector.
func (t troubled) Collect(to chan<- prometheus.Metric) {
	list := &v1alpha1.HierarchyConfigurationList{}
	if !apianswer.ListCached(t.client, list) {
		return
	}
	counts := map[[2]string]int{}
	for i := range list.Items {
		for _, c := range list.Items[i].Status.Conditions {
			if isWrongStatus(c.Type, c.Status) {
				counts[[2]string{c.Type, c.Reason}]++
			}
		}
	}
	for labels, n := range counts {
		to <- prometheus.MustNewConstMetric(conditionsDesc, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
}

// isWrongStatus reports whether a condition of that type and status reports something wrong.
func isWrongStatus[T ~string](kind T, status metav1.ConditionStatus) bool {
	if string(kind) == string(v1alpha1.ConditionHalted) {
		return status == metav1.ConditionTrue
	}
	return status == metav1.ConditionFalse
}
