package configfile

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// knownGates are all feature gates with their defaults.
var knownGates = map[string]bool{
	config.PropagateGenerated: false,
	config.BudgetMetrics:      false,
}

func defaultFeatureGates() map[string]bool { return maps.Clone(knownGates) }

func validateFeatureGates(at *field.Path, gates map[string]bool) field.ErrorList {
	var problems field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if _, known := knownGates[name]; !known {
			problems = append(problems, field.Invalid(at.Key(name), name,
				"unknown feature gate: known are "+strings.Join(slices.Sorted(maps.Keys(knownGates)), ", ")))
		}
	}
	return problems
}
