package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// values are the chart's values: config/chart/values.yaml has their defaults and describes what they mean.
type values struct {
	// Global has the values that Helm passes to every chart that is a part of another one.
	Global     map[string]any `json:"global"`
	Image      imageValues    `json:"image"`
	Controller controller     `json:"controller"`
	CRDs       crds           `json:"crds"`
	Components components     `json:"components"`
}

type imageValues struct {
	Repository string            `json:"repository"`
	Tag        string            `json:"tag"`
	PullPolicy corev1.PullPolicy `json:"pullPolicy"`
}

type controller struct {
	Replicas                      int                          `json:"replicas"`
	Config                        config.OperatorConfiguration `json:"config"`
	KindManifests                 string                       `json:"kindManifests"`
	Resources                     corev1.ResourceRequirements  `json:"resources"`
	GoMemoryLimit                 string                       `json:"goMemoryLimit"`
	TerminationGracePeriodSeconds int                          `json:"terminationGracePeriodSeconds"`
	ExtraArgs                     []string                     `json:"extraArgs"`
	AdditionalRBAC                additionalRBAC               `json:"additionalRBAC"`
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
	CertManager           bool `json:"certManager"`
	WebhookClients        bool `json:"webhookClients"`
}

// valuesSchema returns the JSON schema by which Helm checks values before it renders anything. It checks controller.config as strictly as
// the operator checks its file, except for rules that the Go types do not express.
func valuesSchema() ([]byte, error) {
	schema := schemaOf(reflect.TypeFor[values]())
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the schema of the values: %w", err)
	}
	return append(text, '\n'), nil
}

func schemaOf(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return map[string]any{"type": "string"}
	case reflect.TypeFor[resource.Quantity]():
		return map[string]any{"type": []string{"string", "number"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		properties := map[string]any{}
		addProperties(properties, t)
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.String:
		return map[string]any{"type": "string"}
	}
	return map[string]any{}
}

func addProperties(properties map[string]any, t reflect.Type) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // an inlined struct: its fields are properties here
			addProperties(properties, field.Type)
			continue
		}
		properties[name] = schemaOf(field.Type)
	}
}
