package v1alpha1_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// referenceRow is a row of the table in docs/reference/configuration.md.
type referenceRow struct{ reload, acts string }

// readReference are the rows of that table by key.
func readReference(t *testing.T) map[string]referenceRow {
	t.Helper()
	page, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]referenceRow{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| `") || len(cells) < 5 {
			continue
		}
		for _, key := range expandKeys(cells[0]) {
			if _, twice := rows[key]; twice {
				t.Errorf("docs/reference/configuration.md has %s twice", key)
			}
			rows[key] = referenceRow{reload: strings.TrimSpace(cells[len(cells)-2]), acts: strings.TrimSpace(cells[len(cells)-1])}
		}
	}
	return rows
}

// expandKeys are the keys in the first cell of a row: `a.b`, `.c` is a.b and a.c, and `a.{b,c}` too.
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

// TestReferenceListsEveryKey compares the table of docs/reference/configuration.md with the types, both ways.
func TestReferenceListsEveryKey(t *testing.T) {
	rows := readReference(t)
	for key, needsRestart := range everyKey {
		row, ok := rows[key]
		if !ok {
			t.Errorf("docs/reference/configuration.md doesn't list %s", key)
			continue
		}
		if word := strings.HasPrefix(row.reload, "restart"); word != needsRestart {
			t.Errorf("docs/reference/configuration.md says of the reload of %s: %q; needs a restart: %t", key, row.reload, needsRestart)
		}
		if !slices.Contains([]string{"yes", "admission only", "refused"}, row.acts) {
			t.Errorf("docs/reference/configuration.md says that %s acts %q: a setting that is accepted acts, or is refused", key, row.acts)
		}
	}
	for key := range rows {
		if _, ok := everyKey[key]; !ok && key != "propagation.kinds[].scope" {
			t.Errorf("docs/reference/configuration.md lists %s, which the types don't have", key)
		}
	}
}

// refusedValues are values of keys that this version refuses but for their defaults.
var refusedValues = map[string]string{}

// TestRefusedKeysAreRefused has a value refused for each key of which the reference says so.
func TestRefusedKeysAreRefused(t *testing.T) {
	for key, row := range readReference(t) {
		body, known := refusedValues[key]
		if known != (row.acts == "refused") {
			t.Errorf("docs/reference/configuration.md says that %s acts %q; a test has it refused: %t", key, row.acts, known)
		}
		if known && problems(t, body) == nil {
			t.Errorf("%s: %q is accepted, and does nothing", key, body)
		}
	}
}
