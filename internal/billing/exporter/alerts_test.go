package exporter

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// BILL-53: an alert about a metric that doesn't exist would never fire.
func TestAlerts(t *testing.T) {
	t.Run("BILL-53 the exporter has each metric that the billing alerts of config/prometheus use", func(t *testing.T) {
		flushes.WithLabelValues("success").Inc()
		gathered, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var known []string
		for _, family := range gathered {
			known = append(known, family.GetName())
		}
		text, err := os.ReadFile("../../../config/prometheus/billing_alerts.yaml")
		if err != nil {
			t.Fatal(err)
		}
		asked := regexp.MustCompile(`warren_billing_\w+`).FindAllString(string(text), -1)
		if len(asked) < 6 {
			t.Errorf("only %v are asked for", asked)
		}
		for _, name := range asked {
			if !slices.Contains(known, name) {
				t.Errorf("no metric is called %s", name)
			}
		}
	})
}
