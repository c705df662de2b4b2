package configfile_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// readReference reads the table in docs/reference/configuration.md, and returns for each key the cell of the column "acts".
func readReference(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| `") || len(cells) < 4 {
			continue
		}
		for _, key := range expandKeys(cells[0]) {
			if _, twice := rows[key]; twice {
				t.Errorf("docs/reference/configuration.md has %s twice", key)
			}
			rows[key] = strings.TrimSpace(cells[len(cells)-1])
		}
	}
	return rows
}

// expandKeys returns the keys that the first cell of a row names: both "`a.b`, `.c`" and "`a.{b,c}`" mean a.b and a.c.
func expandKeys(cell string) []string {
	var keys []string
	section := ""
	for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		key := found[1]
		if strings.HasPrefix(key, ".") {
			key = section + key
		}
		section, _, _ = strings.Cut(key, ".")
		before, names, several := strings.Cut(strings.TrimSuffix(key, "}"), "{")
		if !several {
			keys = append(keys, key)
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			keys = append(keys, before+name)
		}
	}
	return keys
}

// leaves returns the paths of all fields of a configuration, except those that are sections with fields of their own.
func leaves(t reflect.Type, path string) []string {
	var found []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		switch leaf := f.Type == reflect.TypeFor[metav1.Duration]() || f.Type == reflect.TypeFor[resource.Quantity](); {
		case f.Type.Kind() == reflect.Struct && !leaf:
			found = append(found, leaves(f.Type, path+name+".")...)
		default:
			found = append(found, path+name)
		}
	}
	return found
}

// TestReferenceListsEveryKey checks that the table of docs/reference/configuration.md and the Go types have the same keys.
func TestReferenceListsEveryKey(t *testing.T) {
	rows, known := readReference(t), leaves(reflect.TypeFor[config.OperatorConfiguration](), "")
	for _, key := range known {
		if acts, listed := rows[key]; !listed || !slices.Contains([]string{"yes", "admission only", "refused"}, acts) {
			t.Errorf("docs/reference/configuration.md says that %s acts %q: a setting that is accepted acts, or is refused", key, acts)
		}
	}
	for key := range rows {
		if !slices.Contains(known, key) && key != "propagation.kinds[].scope" {
			t.Errorf("docs/reference/configuration.md lists %s, which the types don't have", key)
		}
	}
}

// refusedValues has, for each key of which this version accepts only the default, a configuration with another value.
var refusedValues = map[string]string{"subNamespaces.limits.sudoers": "subNamespaces: {limits: {sudoers: 1}}\n"}

// TestRefusedKeysAreRefused checks, for each key that the reference calls refused, that a value other than the default is refused.
func TestRefusedKeysAreRefused(t *testing.T) {
	for key, acts := range readReference(t) {
		body, known := refusedValues[key]
		if known != (acts == "refused") {
			t.Errorf("docs/reference/configuration.md says that %s acts %q; a test has it refused: %t", key, acts, known)
		}
		if known && problems(t, body) == nil {
			t.Errorf("%s: %q is accepted, and does nothing", key, body)
		}
	}
}
