package copying

import "github.com/prometheus/client_golang/prometheus"

// CountWrite counts a write in a counter with the labels verb and result, which is ok or error.
func CountWrite(writes *prometheus.CounterVec, verb string, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	writes.WithLabelValues(verb, result).Inc()
}
