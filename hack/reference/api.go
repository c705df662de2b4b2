package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

type schema = apiextensionsv1.JSONSchemaProps

// kinds are Warren's kinds in the order of the page, each with its CustomResourceDefinition. exampleDir has an example of each kind, which
// sets every field of its spec.
var kinds = []struct{ name, definition string }{
	{"LNamespace", "config/crd/bases/tenancy.warren.dev_lnamespaces.yaml"},
	{"SubNamespace", "config/crd/bases/tenancy.warren.dev_subnamespaces.yaml"},
	{"HierarchyConfiguration", "config/crd/bases/tenancy.warren.dev_hierarchyconfigurations.yaml"},
	{"ResourceDistribution", "config/crd/distribution/tenancy.warren.dev_resourcedistributions.yaml"},
	{"HierarchicalResourceQuota", "config/crd/budgets/tenancy.warren.dev_hierarchicalresourcequotas.yaml"},
	{"SudoRequest", "config/crd/requests/tenancy.warren.dev_sudorequests.yaml"},
}

const exampleDir = "docs/reference/examples"

func apiPage(context.Context) (string, error) {
	p := newPage("API reference", "the Go types in api/v1alpha1 and "+exampleDir,
		"Every field of the six kinds of group `tenancy.warren.dev`, version `v1alpha1`. The API server checks each *rule* itself; "+
			"[Admission](admission.md) has the rules that need other objects. A test applies each example to a real API server.")
	for _, kind := range kinds {
		if err := writeKind(p, kind.name, kind.definition); err != nil {
			return "", fmt.Errorf("kind %s: %w", kind.name, err)
		}
	}
	return p.String(), nil
}

// writeKind adds the section of a kind.
func writeKind(p *page, kind, file string) error {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := readYAML(file, &definition); err != nil {
		return err
	}
	exampleFile := filepath.Join(exampleDir, strings.ToLower(kind)+".yaml")
	var example map[string]any
	if err := readYAML(exampleFile, &example); err != nil {
		return err
	}
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		return err
	}
	version := definition.Spec.Versions[0]
	top := version.Schema.OpenAPIV3Schema
	p.heading(kind)
	p.line("%s", sentence(top.Description))
	p.line("\nScope: %s. Short name: `%s`.", definition.Spec.Scope, strings.Join(definition.Spec.Names.ShortNames, "`, `"))
	for _, rule := range slices.Compact(messagesOf(*top)) {
		p.line("\nRule: %s.", rule)
	}
	p.line("\n```yaml\n%s```\n", text)
	p.table("field of the spec", "type", "default", "rule", "example", "what it does")
	writeFields(p, "spec", top.Properties["spec"], example["spec"], true)
	p.line("")
	p.table("field of the status", "type", "what it reports")
	writeFields(p, "status", top.Properties["status"], nil, false)
	p.line("")
	p.table("column of `kubectl get`", "shows")
	for _, column := range version.AdditionalPrinterColumns {
		wide := ""
		if column.Priority > 0 {
			wide = ", with `-o wide`"
		}
		p.row(code(column.Name), code(column.JSONPath)+wide)
	}
	return nil
}

// writeFields adds a row for each field below path, at every depth. Only a spec has defaults, rules and examples.
func writeFields(p *page, path string, s schema, example any, spec bool) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field, at := s.Properties[name], path+"."+name
		value := valueAt(example, name)
		if spec {
			p.row(code(strings.TrimPrefix(at, "spec.")), typeOf(field), code(defaultOf(field)), ruleOf(field, slices.Contains(s.Required, name)),
				code(compact(value)), sentence(field.Description))
		} else {
			p.row(code(strings.TrimPrefix(at, "status.")), typeOf(field), sentence(field.Description))
		}
		if isStandard(field) {
			continue
		}
		if field.Items != nil {
			at, field = at+"[]", *field.Items.Schema
			value = firstOf(value)
		}
		writeFields(p, at, field, value, spec)
	}
}

// isStandard reports whether a field has a type of Kubernetes itself, whose fields Kubernetes documents.
func isStandard(s schema) bool {
	_, selector := s.Properties["matchExpressions"]
	return selector || s.XEmbeddedResource || isConditions(s)
}

func isConditions(s schema) bool {
	return s.Items != nil && slices.Contains(s.XListMapKeys, "type") && s.Items.Schema.Properties["lastTransitionTime"].Type != ""
}

func typeOf(s schema) string {
	switch {
	case isConditions(s):
		return "[]Condition"
	case isStandard(s) && s.XEmbeddedResource:
		return "any object"
	case isStandard(s):
		return "LabelSelector"
	case s.XIntOrString:
		return "integer or string"
	case s.Items != nil:
		return "[]" + typeOf(*s.Items.Schema)
	case s.AdditionalProperties != nil:
		return "map of " + typeOf(*s.AdditionalProperties.Schema)
	case s.Format == "date-time":
		return "time"
	}
	return s.Type
}

func defaultOf(s schema) string {
	if s.Default == nil {
		return ""
	}
	return strings.Trim(string(s.Default.Raw), `"`)
}

// ruleOf returns what the API server checks of a field, and of the items of a list.
func ruleOf(s schema, required bool) string {
	var rules []string
	if required {
		rules = append(rules, "required")
	}
	rules = append(rules, limitsOf(s, "")...)
	if s.Items != nil {
		rules = append(rules, limitsOf(*s.Items.Schema, "each ")...)
	}
	if s.AdditionalProperties != nil {
		rules = append(rules, limitsOf(*s.AdditionalProperties.Schema, "each value ")...)
	}
	return strings.Join(rules, "; ")
}

func limitsOf(s schema, whose string) []string {
	var rules []string
	add := func(format string, args ...any) { rules = append(rules, whose+fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 {
		var values []string
		for _, one := range s.Enum {
			values = append(values, code(strings.Trim(string(one.Raw), `"`)))
		}
		add("one of %s", strings.Join(values, ", "))
	}
	if s.Minimum != nil {
		add("at least %.0f", *s.Minimum)
	}
	for text, limit := range map[string]*int64{"at most %d items": s.MaxItems, "at most %d keys": s.MaxProperties,
		"at most %d characters": s.MaxLength} {
		if limit != nil {
			add(text, *limit)
		}
	}
	if s.MinItems != nil {
		add("at least %d items", *s.MinItems)
	}
	if s.Pattern != "" {
		add("matches `%s`", s.Pattern)
	}
	slices.Sort(rules)
	return append(rules, messagesOf(s)...)
}

// messagesOf returns the messages of a schema's rules in CEL.
func messagesOf(s schema) []string {
	var messages []string
	for _, rule := range s.XValidations {
		messages = append(messages, strings.TrimSuffix(rule.Message, "."))
	}
	return messages
}

func valueAt(example any, name string) any {
	fields, _ := example.(map[string]any)
	return fields[name]
}

func firstOf(list any) any {
	items, _ := list.([]any)
	if len(items) == 0 {
		return nil
	}
	return items[0]
}

// compact returns a value as JSON, or nothing if that is longer than 60 bytes. For a list of objects, it returns nothing, because their
// fields have examples of their own.
func compact(value any) string {
	if value == nil {
		return ""
	}
	if _, object := firstOf(value).(map[string]any); object {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil || len(text) > 60 {
		return ""
	}
	return string(text)
}

func readYAML(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, into)
}
