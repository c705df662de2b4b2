package subnamespace

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
)

// population counts the SubNamespaces in the cache at each scrape.
type population struct{ client client.Reader }

var subNamespaces = prometheus.NewDesc("warren_subnamespaces", "SubNamespaces by status and reason of their condition Ready.",
	[]string{"ready", "reason"}, nil)

// Describe implements prometheus.Collector.
func (population) Describe(to chan<- *prometheus.Desc) { to <- subNamespaces }

// Collect implements prometheus.Collector.
func (p population) Collect(to chan<- prometheus.Metric) {
	list := &v1alpha1.SubNamespaceList{}
	if !apianswer.ListCached(p.client, list) {
		return
	}
	counts := map[[2]string]int{}
	for i := range list.Items {
		if ready := v1alpha1.FindCondition(list.Items[i].Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			counts[[2]string{string(ready.Status), ready.Reason}]++
		} else {
			counts[[2]string{"Unknown", "Unseen"}]++
		}
	}
	for labels, n := range counts {
		to <- prometheus.MustNewConstMetric(subNamespaces, prometheus.GaugeValue, float64(n), labels[0], labels[1])
	}
}
