package configfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// knownGates are all feature gates with their defaults.
var knownGates = map[string]bool{
	config.PropagateGenerated: false,
}

func defaultFeatureGates() map[string]bool { return maps.Clone(knownGates) }

// KnownGates returns all feature gates with their defaults, as the flag --feature-gates takes them.
func KnownGates() string {
	var gates []string
	for _, name := range slices.Sorted(maps.Keys(knownGates)) {
		gates = append(gates, fmt.Sprintf("%s=%t", name, knownGates[name]))
	}
	return strings.Join(gates, ",")
}

// ParseFeatureGates reads the flag --feature-gates, "A=true,B=false". Use WithFeatureGates to set the result over a file's
// gates. All problems are reported together, one per line.
func ParseFeatureGates(flag string) (map[string]bool, error) {
	gates := map[string]bool{}
	var problems []error
	for entry := range strings.SplitSeq(flag, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, value, _ := strings.Cut(entry, "=")
		open, err := strconv.ParseBool(value)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("--feature-gates: %q must be NAME=true or NAME=false", entry))
		case !isKnownGate(name):
			problems = append(problems, fmt.Errorf("--feature-gates: %q: %s", name, unknownGate()))
		default:
			gates[name] = open
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return gates, nil
}

func validateFeatureGates(at *field.Path, gates map[string]bool) field.ErrorList {
	var problems field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if !isKnownGate(name) {
			problems = append(problems, field.Invalid(at.Key(name), name, unknownGate()))
		}
	}
	return problems
}

func isKnownGate(name string) bool {
	_, known := knownGates[name]
	return known
}

func unknownGate() string {
	return "unknown feature gate: known are " + strings.Join(slices.Sorted(maps.Keys(knownGates)), ", ")
}
