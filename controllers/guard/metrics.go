package guard

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/manifests"
)

var (
	gap = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "warren_policy_gap", Help: "1 if an admission policy of Warren is missing, does not deny, or does not list a configured kind; " +
			"the name is without warren-.",
	}, []string{"policy"})
	refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "warren_cage_refusals_total", Help: "Writes of the operator that one of its own policies refused. Alert on it.",
	}, []string{"policy"})
)

func init() {
	metrics.Registry.MustRegister(gap, refusals)
	for _, p := range manifests.Shipped {
		if strings.HasPrefix(p.Name, "operator-cage-") {
			refusals.WithLabelValues(p.Name) // so that the metric exists, with 0, before the first refusal
		}
	}
}
