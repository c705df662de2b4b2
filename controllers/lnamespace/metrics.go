package lnamespace

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
)

// population counts the LNamespaces in the cache at each scrape.
type population struct{ client client.Reader }

var lnamespaces = prometheus.NewDesc("warren_lnamespaces", "LNamespaces by their condition Ready.", []string{"ready"}, nil)

// Describe implements prometheus.Collector.
func (population) Describe(to chan<- *prometheus.Desc) { to <- lnamespaces }

// Collect implements prometheus.Collector.
func (p population) Collect(to chan<- prometheus.Metric) {
	list := &v1alpha1.LNamespaceList{}
	if !apianswer.ListCached(p.client, list) {
		return
	}
	counts := map[string]int{"True": 0, "False": 0, "Unknown": 0}
	for i := range list.Items {
		status := "Unknown"
		if ready := v1alpha1.FindCondition(list.Items[i].Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			status = string(ready.Status)
		}
		counts[status]++
	}
	for status, n := range counts {
		to <- prometheus.MustNewConstMetric(lnamespaces, prometheus.GaugeValue, float64(n), status)
	}
}
