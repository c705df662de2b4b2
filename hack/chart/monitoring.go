package main

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/test/devcluster"
)

// monitoringSwitches are the conditions of the kinds in config/prometheus.
var monitoringSwitches = map[string]string{
	"ServiceMonitor": ".Values.monitoring.monitors", "PodMonitor": ".Values.monitoring.monitors",
	"PrometheusRule": ".Values.monitoring.alerts", "ConfigMap": ".Values.monitoring.dashboards",
}

// expressions are written so that Helm prints them: alerts and dashboards have expressions of their own.
var expressions = strings.NewReplacer("{{", `{{ "{{" }}`)

// renderMonitoring returns the templates of the objects in config/prometheus. Those of the exporter exist with it alone.
func renderMonitoring() (map[string][]byte, error) {
	all, err := devcluster.Render("config/prometheus")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, u := range all {
		condition := monitoringSwitches[u.GetKind()]
		if condition == "" {
			return nil, fmt.Errorf("config/prometheus has a %s, for which the chart has no switch", u.GetKind())
		}
		if strings.Contains(u.GetName(), "billing") {
			condition = "and " + condition + " (" + billing + ")"
		}
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		files[templateName(u.GetKind(), u.GetNamespace(), u.GetName())] = fmt.Appendf(nil, "{{- if %s }}\n%s{{- end }}\n", condition,
			expressions.Replace(string(text)))
	}
	return files, nil
}
