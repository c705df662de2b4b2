package main

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`
	quantityPattern = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`
	bytesPattern    = `^[0-9]+([KMGTPE]i|[kMGTPE])?$`
	groupPattern    = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
)

// enums are the types of values that are one of a few words.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[corev1.PullPolicy]():                    words(corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever),
	reflect.TypeFor[corev1.TolerationOperator]():            words(corev1.TolerationOpExists, corev1.TolerationOpEqual),
	reflect.TypeFor[corev1.UnsatisfiableConstraintAction](): words(corev1.DoNotSchedule, corev1.ScheduleAnyway),
	reflect.TypeFor[corev1.TaintEffect](): words("", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute),
	reflect.TypeFor[config.BillingSchema](): words(config.SchemaManage, config.SchemaVerify),
	reflect.TypeFor[config.BillingField]():  words(config.RequireCostCenter, config.RequireOwner),
	reflect.TypeFor[config.KindMode]():      words(config.ModeOptIn, config.ModeAll, config.ModeRemove),
	reflect.TypeFor[config.KindScope]():     words(config.ScopeAuto, config.ScopeCluster, config.ScopeNamespaces),
	reflect.TypeFor[config.BillingDriver](): words(config.DriverNone, config.DriverSQLite, config.DriverPostgres,
		config.DriverBigQuery),
	reflect.TypeFor[tenancy.SudoMode](): words(tenancy.SudoLegacy, tenancy.SudoConstrained),
}

func words[T ~string](all ...T) (texts []string) {
	for _, one := range all {
		texts = append(texts, string(one))
	}
	return texts
}

// rules are what the types don't say, by the path of a value. Where one replaces a rule of the type, it is stricter.
var rules = map[string]map[string]any{
	"image.pullSecrets[]":                                  {"required": []string{"name"}},
	"image.pullSecrets[].name":                             {"minLength": 1},
	"controller.replicas":                                  {"minimum": 1},
	"controller.goMemoryLimit":                             {"pattern": `^[0-9]+([KMGT]i)?B$`},
	"exporter.goMemoryLimit":                               {"pattern": `^[0-9]+([KMGT]i)?B$`},
	"exporter.env[]":                                       {"required": []string{"name"}},
	"controller.env[]":                                     {"required": []string{"name"}},
	"monitoring.namespace":                                 {"pattern": `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`},
	"monitoring.interval":                                  {"pattern": `^$|^([0-9]+(ms|s|m|h|d))+$`},
	"controller.priorityLevel":                             {"pattern": groupPattern},
	"controller.ports.webhooks":                            port,
	"controller.ports.metrics":                             port,
	"controller.ports.health":                              port,
	"controller.config.apiVersion":                         {"const": config.APIVersion},
	"controller.config.kind":                               {"const": config.Kind},
	"controller.config.concurrency":                        between(1, 256),
	"controller.config.controllers[]":                      {"enum": controllerEntries()},
	"controller.config.access.userClusterRole":             {"minLength": 1, "not": map[string]any{"const": "cluster-admin"}},
	"controller.config.sudo.requests.maxOpen":              {"minimum": 1},
	"controller.config.sudo.requests.maxPerDay":            {"minimum": 1},
	"controller.config.subNamespaces.limits.sudoers":       {"not": map[string]any{}}, // of an LNamespace alone
	"controller.config.acceptRemovals":                     {"pattern": `^([0-9a-f]+)?$`},
	"controller.config.informers.maxInformers":             {"minimum": 1},
	"controller.config.informers.maxNamespaces":            {"minimum": 1},
	"controller.config.propagation.scrub.objectsPerSecond": between(1, 10_000),
	"controller.config.propagation.kinds[]":                {"required": []string{"kind"}},
	"controller.config.propagation.kinds[].kind":           {"pattern": configfile.KindPattern.String()},
	"controller.config.propagation.kinds[].group":          {"pattern": groupPattern},
	"controller.config.propagation.generators[]":           {"required": []string{"kind"}},
	"controller.config.propagation.generators[].kind":      {"pattern": configfile.KindPattern.String()},
	"controller.config.propagation.neverPropagate[]":       anyOf("name", "type", "labels"),
	"controller.config.distribution.kinds[]":               {"required": []string{"version", "kind"}},
	"controller.config.distribution.kinds[].kind":          {"pattern": configfile.KindPattern.String()},
	"controller.config.distribution.kinds[].version":       {"minLength": 1},
	"controller.config.distribution.maxObjectBytes":        between(1024, 1_500_000),
	"controller.config.distribution.maxTotalBytes":         {"pattern": bytesPattern, "minimum": 0},
	"controller.config.billing": {
		"allOf": []any{needs("postgres", "dsnFile"), needs("bigquery", "project", "dataset", "location")},
	},
	"controller.config.featureGates": {
		"properties": map[string]any{config.PropagateGenerated: map[string]any{"type": "boolean"}}, "additionalProperties": false,
	},
	"controller.config.billing.table":                 {"pattern": configfile.TablePattern.String()},
	"controller.config.billing.batch.maxRows":         {"minimum": 1},
	"controller.config.billing.batch.maxBytes":        {"pattern": bytesPattern, "minimum": 1},
	"controller.config.billing.bigquery.project":      {"pattern": configfile.ProjectPattern.String()},
	"controller.config.billing.bigquery.dataset":      {"pattern": configfile.DatasetPattern.String()},
	"controller.config.billing.bigquery.location":     {"pattern": configfile.LocationPattern.String()},
	"controller.config.billing.defaults[]":            anyOf("costCenter", "owner", "labels"),
	"controller.config.billing.defaults[].costCenter": {"maxLength": 64},
	"controller.config.billing.defaults[].owner":      {"maxLength": 256},
	"controller.config.billing.defaults[].labels":     {"maxProperties": 16},
}

var port = between(1, 65535)

func between(low, high int) map[string]any { return map[string]any{"minimum": low, "maximum": high} }

// anyOf requires one of some fields.
func anyOf(fields ...string) map[string]any {
	var options []any
	for _, field := range fields {
		options = append(options, map[string]any{"required": []string{field}})
	}
	return map[string]any{"anyOf": options}
}

// needs requires clusterID, and the fields of a driver's section, where billing has this driver.
func needs(driver string, fields ...string) map[string]any {
	filled := map[string]any{}
	for _, field := range fields {
		filled[field] = map[string]any{"minLength": 1}
	}
	return map[string]any{
		"if": map[string]any{
			"required": []string{"driver"}, "properties": map[string]any{"driver": map[string]any{"const": driver}},
		},
		"then": map[string]any{
			"required": []string{"clusterID", driver},
			"properties": map[string]any{
				"clusterID": map[string]any{"minLength": 1},
				driver:      map[string]any{"required": fields, "properties": filled},
			},
		},
	}
}

// controllerEntries are the entries that controllers may have.
func controllerEntries() []string {
	entries := []string{config.EveryController}
	for _, name := range config.ControllerNames() {
		entries = append(entries, name, "-"+name)
	}
	return entries
}
