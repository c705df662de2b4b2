package hierarchy

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Writes counts the operator's writes to Namespaces.
var Writes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "warren_namespace_writes_total", Help: "Writes to Namespaces.",
}, []string{"verb", "result"})

func init() { metrics.Registry.MustRegister(Writes) }

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}

// Count counts a write to a Namespace by what came of it.
func Count(verb string, err error) { Writes.WithLabelValues(verb, result(err)).Inc() }
