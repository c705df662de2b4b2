package devcluster

import (
	"strings"
	"testing"
)

func TestMetricsValue(t *testing.T) {
	m, err := parseMetrics(strings.NewReader(`# TYPE writes_total counter
writes_total{kind="Secret",result="ok"} 3
writes_total{kind="Secret",result="error"} 1
writes_total{kind="Role",result="ok"} 5
# TYPE ready gauge
ready 1
# TYPE seconds histogram
seconds_bucket{le="1"} 2
seconds_bucket{le="+Inf"} 4
seconds_sum 7.5
seconds_count 4
# TYPE queue_count gauge
queue_count 9
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		labels map[string]string
		want   float64
	}{
		{"writes_total", nil, 9},
		{"writes_total", map[string]string{"kind": "Secret"}, 4},
		{"writes_total", map[string]string{"kind": "Secret", "result": "ok"}, 3},
		{"writes_total", map[string]string{"kind": "ConfigMap"}, 0},
		{"writes_total", map[string]string{"nosuch": ""}, 0},
		{"ready", nil, 1},
		{"seconds_count", nil, 4},
		{"seconds_sum", nil, 7.5},
		{"queue_count", nil, 9},
		{"nosuch", nil, 0},
	} {
		if got := m.Value(c.name, c.labels); got != c.want {
			t.Errorf("%s%v = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if m.Has("writes_total", map[string]string{"kind": "ConfigMap"}) || !m.Has("ready", nil) {
		t.Error("Has must tell a series that is missing from one that is there")
	}
}
