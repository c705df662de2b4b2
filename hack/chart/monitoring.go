package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// A value of the chart stands where these texts do: in a manifest they are no expressions yet, which expressions would hide.
const (
	labelsMark, namespaceMark, intervalMark = "MORE-LABELS", "NAMESPACE", "INTERVAL"
	commonMark, annotationsMark             = "COMMON-LABELS", "ANNOTATIONS"
)

var monitoringValues = strings.NewReplacer(
	"\n    more: "+labelsMark,
	"\n    {{- with merge (dict) .Values.monitoring.labels .Values.commonLabels }}{{ toYaml . | nindent 4 }}{{ end }}",
	"\n    more: "+commonMark, "\n    "+commonLabels,
	"\n  more: "+annotationsMark, "\n  "+annotationsBlock,
	"namespace: "+namespaceMark, "namespace: {{ .Values.monitoring.namespace }}",
	"\n    z: "+intervalMark, "\n    {{- with .Values.monitoring.interval }}\n    interval: {{ . }}\n    {{- end }}",
)

// addMarks marks the places of values in an object that the Prometheus operator selects.
func addMarks(u *unstructured.Unstructured) error {
	metadata := u.Object["metadata"].(map[string]any)
	if metadata["annotations"] != nil {
		return fmt.Errorf("%s has annotations, beside which the chart has no place for commonAnnotations", u.GetName())
	}
	metadata["more"] = annotationsMark
	if u.GetKind() == "ConfigMap" {
		addEntry(metadata, "labels", commonMark)
		return nil
	}
	addEntry(metadata, "labels", labelsMark)
	u.SetNamespace(namespaceMark)
	for _, field := range []string{"endpoints", "podMetricsEndpoints"} {
		endpoints, found, err := unstructured.NestedSlice(u.Object, "spec", field)
		if err != nil || !found {
			continue
		}
		for _, endpoint := range endpoints {
			endpoint.(map[string]any)["z"] = intervalMark // sorted to the end
		}
		if err := unstructured.SetNestedSlice(u.Object, endpoints, "spec", field); err != nil {
			return fmt.Errorf("marking %s of %s: %w", field, u.GetName(), err)
		}
	}
	return nil
}

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
		name := templateName(u.GetKind(), u.GetNamespace(), u.GetName())
		if err := addMarks(u); err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		files[name] = fmt.Appendf(nil, "{{- if %s }}\n%s{{- end }}\n", condition, monitoringValues.Replace(expressions.Replace(string(text))))
	}
	return files, nil
}
