package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/internal/configfile"
)

// badValues are values that the operator refuses in its configuration file, by their key.
var badValues = map[string][]string{
	"apiVersion":                           {"v1", "config.tenancy.warren.dev/v1"},
	"kind":                                 {"Configuration"},
	"sudo.mode":                            {"legacy", "On", "3"},
	"sudo.Mode":                            {"Legacy"},
	"sudo.requests.maxOpen":                {"0", "few"},
	"sudo.requests.maxPerDay":              {"0"},
	"sudo.requests.historyFor":             {"weekly"},
	"concurrency":                          {"0", "257", "-1", "many", "1.5"},
	"controllers":                          {"[everything]", "[--access]", "access"},
	"access.userClusterRole":               {"cluster-admin", `""`, "[admin]"},
	"acceptRemovals":                       {"yes please"},
	"tenants.maxPerCreator":                {"-1", "none"},
	"tenants.reservedNames":                {"prod-*"},
	"subNamespaces.limits.depth":           {"-1"},
	"subNamespaces.limits.subNamespaces":   {"-5", "few"},
	"subNamespaces.limits.sudoers":         {"0", "3"},
	"subNamespaces.allowCascadingDeletion": {"sometimes"},
	"inheritance.labels":                   {"team", "{team: a}"},
	"propagation.kinds": {
		"[{mode: All}]", "[{kind: secret}]", "[{kind: Secret, mode: optin}]", "[{kind: Secret, scope: namespaces}]",
		"[{kind: Secret, group: Core/v1}]", "[{kind: Secret, modus: All}]",
	},
	"propagation.bindOwnRole":            {"1"},
	"propagation.neverPropagate":         {"[{kind: Secret}]"},
	"propagation.scrub.objectsPerSecond": {"0", "10001"},
	"propagation.scrub.interval":         {"daily", "24"},
	"propagation.retry.min":              {"1 s"},
	"distribution.kinds":                 {"[{kind: Secret}]", "[{version: v1}]", "[{version: v1, kind: config-map}]"},
	"distribution.maxObjectBytes":        {"1023", "1500001", "1Mi"},
	"distribution.maxTotalBytes":         {"-1", "1.5", "lots"},
	"informers.maxInformers":             {"0"},
	"informers.maxNamespaces":            {"0", "-3"},
	"informers.degradedAfter":            {"soon"},
	"clientConnection.qps":               {"-1", "fast"},
	"clientConnection.burst":             {"-1"},
	"featureGates":                       {"{PropagateAll: true}", "{PropagateGenerated: maybe}"},
	"billing.driver":                     {"oracle", "postgres", "bigquery"},
	"billing.schema":                     {"Manage"},
	"billing.table":                      {"a-b", `"1; drop"`},
	"billing.required":                   {"[team]"},
	"billing.bigquery.project":           {"Acme"},
	"billing.bigquery.dataset":           {"a.b"},
	"billing.bigquery.location":          {"4EU"},
	"billing.defaults":                   {"[{user: alice}]"},
	"billing.resyncInterval":             {"hourly"},
}

// compareRefusals gives bad values to the operator and to the chart. The chart gets one value of each key at once.
func (h helm) compareRefusals(t *testing.T) {
	total := 0
	for round := 0; ; round++ {
		files, keys := []string{}, badKeys(round)
		if len(keys) == 0 {
			break
		}
		total += len(keys)
		for _, key := range keys {
			value := badValues[key][round]
			if _, err := configfile.Parse("config.yaml", []byte(nested(key, value))); err == nil {
				t.Errorf("the operator takes %s: %s", key, value)
			}
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(nested("controller.config."+key, value)), 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, "--values="+file)
		}
		_, stderr := h.template(t, files...)
		for _, key := range keys {
			at := "at '/controller/config/" + strings.ReplaceAll(key, ".", "/")
			section := at[:strings.LastIndex(at, "/")] + "'" // where an unknown key, or one that is missing, is reported
			if !strings.Contains(stderr, at) && !strings.Contains(stderr, section) {
				t.Errorf("the chart takes %s: %s\n%s", key, badValues[key][round], stderr)
			}
		}
	}
	if total < 60 {
		t.Errorf("%d bad values were compared, want at least 60", total)
	}
}

// badKeys are the keys with more than so many bad values.
func badKeys(round int) (keys []string) {
	for key, all := range badValues {
		if round < len(all) {
			keys = append(keys, key)
		}
	}
	return keys
}

// nested is the YAML of a value below a key with dots. A file of the operator also needs its apiVersion and kind.
func nested(key, value string) string {
	fields := strings.Split(key, ".")
	var text strings.Builder
	if fields[0] != "controller" {
		for name, usual := range map[string]string{"apiVersion": "config.tenancy.warren.dev/v1alpha1", "kind": "OperatorConfiguration"} {
			if key != name {
				text.WriteString(name + ": " + usual + "\n")
			}
		}
	}
	for depth, field := range fields {
		text.WriteString(strings.Repeat("  ", depth) + field + ":")
		if depth < len(fields)-1 {
			text.WriteString("\n")
		}
	}
	return text.String() + " " + value + "\n"
}
