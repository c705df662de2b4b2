package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// values are the chart's values: config/chart/values.yaml has their defaults and describes what they mean.
type values struct {
	// Global has the values that Helm passes to every chart that is a part of another one.
	Global map[string]any `json:"global"`
	Image  imageValues    `json:"image"`
	// CommonLabels and CommonAnnotations are on every object and pod.
	CommonLabels      map[string]string           `json:"commonLabels"`
	CommonAnnotations map[string]string           `json:"commonAnnotations"`
	HookResources     corev1.ResourceRequirements `json:"hookResources"`
	Controller        controller                  `json:"controller"`
	Exporter          exporter                    `json:"exporter"`
	CRDs              crds                        `json:"crds"`
	Components        components                  `json:"components"`
	Monitoring        monitoring                  `json:"monitoring"`
}

type imageValues struct {
	Repository  string                        `json:"repository"`
	Tag         string                        `json:"tag"`
	PullPolicy  corev1.PullPolicy             `json:"pullPolicy"`
	PullSecrets []corev1.LocalObjectReference `json:"pullSecrets"`
}

// placement says where the pods of a Deployment run, and what else they carry.
type placement struct {
	NodeSelector              map[string]string                 `json:"nodeSelector"`
	Tolerations               []corev1.Toleration               `json:"tolerations"`
	Affinity                  corev1.Affinity                   `json:"affinity"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	PriorityClassName         string                            `json:"priorityClassName"`
	PodAnnotations            map[string]string                 `json:"podAnnotations"`
	PodLabels                 map[string]string                 `json:"podLabels"`
	ServiceAccount            serviceAccount                    `json:"serviceAccount"`
	ExtraVolumes              []corev1.Volume                   `json:"extraVolumes"`
	ExtraVolumeMounts         []corev1.VolumeMount              `json:"extraVolumeMounts"`
	ExtraArgs                 []string                          `json:"extraArgs"`
	Env                       []corev1.EnvVar                   `json:"env"`
	PodSecurityContext        corev1.PodSecurityContext         `json:"podSecurityContext"`
	SecurityContext           corev1.SecurityContext            `json:"securityContext"`
	Resources                 corev1.ResourceRequirements       `json:"resources"`
	GoMemoryLimit             string                            `json:"goMemoryLimit"`
}

type serviceAccount struct {
	Annotations map[string]string `json:"annotations"`
}

type controller struct {
	Replicas                      int                          `json:"replicas"`
	Config                        config.OperatorConfiguration `json:"config"`
	KindManifests                 string                       `json:"kindManifests"`
	TerminationGracePeriodSeconds int                          `json:"terminationGracePeriodSeconds"`
	AdditionalRBAC                additionalRBAC               `json:"additionalRBAC"`
	HostNetwork                   bool                         `json:"hostNetwork"`
	PriorityLevel                 string                       `json:"priorityLevel"`
	Ports                         ports                        `json:"ports"`
	placement                     `json:",inline"`
}

type ports struct {
	Webhooks int `json:"webhooks"`
	Metrics  int `json:"metrics"`
	Health   int `json:"health"`
}

type exporter struct {
	Storage   storage `json:"storage"`
	placement `json:",inline"`
}

type storage struct {
	ClassName string            `json:"className"`
	Size      resource.Quantity `json:"size"`
}

type additionalRBAC struct {
	Rules        []rbacv1.PolicyRule `json:"rules"`
	ClusterRoles []string            `json:"clusterRoles"`
}

type crds struct {
	Enabled bool `json:"enabled"`
	Keep    bool `json:"keep"`
}

type components struct {
	StrictPlacement       bool `json:"strictPlacement"`
	OpenAccess            bool `json:"openAccess"`
	Hardened              bool `json:"hardened"`
	HierarchyAuthority    bool `json:"hierarchyAuthority"`
	Distribution          bool `json:"distribution"`
	DistributionOverwrite bool `json:"distributionOverwrite"`
	Budgets               bool `json:"budgets"`
	Requests              bool `json:"requests"`
	CertManager           bool `json:"certManager"`
	WebhookClients        bool `json:"webhookClients"`
}

type monitoring struct {
	Monitors   bool              `json:"monitors"`
	Alerts     bool              `json:"alerts"`
	Dashboards bool              `json:"dashboards"`
	Labels     map[string]string `json:"labels"`
	Namespace  string            `json:"namespace"`
	Interval   string            `json:"interval"`
}

// valuesSchema returns the JSON schema by which Helm checks values before it renders anything. What the Go types don't say about
// controller.config is in rules; what no schema can say, such as a regular expression that doesn't compile, the operator refuses.
func valuesSchema() ([]byte, error) {
	schema := schemaOf(reflect.TypeFor[values](), "")
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	text, err := json.MarshalIndent(schema, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema of the values: %w", err)
	}
	return append(text, '\n'), nil
}

// schemaOf returns the schema of the value at a path, with the rules for this path.
func schemaOf(t reflect.Type, path string) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	schema := schemaOfType(t, path)
	if allowed := enums[t]; allowed != nil {
		schema["enum"] = allowed
	}
	maps.Copy(schema, rules[path])
	return schema
}

func schemaOfType(t reflect.Type, path string) map[string]any {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return map[string]any{"type": "string", "pattern": durationPattern}
	case reflect.TypeFor[resource.Quantity]():
		return map[string]any{"type": []string{"string", "number"}, "pattern": quantityPattern}
	case reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"type": []string{"string", "integer"}}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := map[string]any{}
		addProperties(properties, t, path)
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), path+"[]")}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), path+"[]")}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float32:
		return map[string]any{"type": "number", "minimum": 0}
	case reflect.String:
		return map[string]any{"type": "string"}
	}
	return map[string]any{}
}

func addProperties(properties map[string]any, t reflect.Type, path string) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // an inlined struct: its fields are properties here
			addProperties(properties, field.Type, path)
			continue
		}
		properties[name] = schemaOf(field.Type, strings.TrimPrefix(path+"."+name, "."))
	}
}
