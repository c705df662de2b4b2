package configfile

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

func validatePropagation(at *field.Path, p *config.Propagation) field.ErrorList {
	problems := validatePropagatedKinds(at.Child("kinds"), p.Kinds)
	problems = append(problems, validateAllGlobs(at.Child("excludedLabels"), p.ExcludedLabels)...)
	problems = append(problems, validateAllGlobs(at.Child("excludedAnnotations"), p.ExcludedAnnotations)...)
	for i := range p.NeverPropagate {
		problems = append(problems, validateNeverPropagate(at.Child("neverPropagate").Index(i), &p.NeverPropagate[i])...)
	}
	problems = append(problems, validateScrubRate(at.Child("scrub"), &p.Scrub)...)
	return append(problems, validateRetryTimes(at.Child("retry"), &p.Retry)...)
}

func validatePropagatedKinds(at *field.Path, kinds []config.PropagatedKind) field.ErrorList {
	var problems field.ErrorList
	seen := map[schema.GroupKind]bool{}
	for i, k := range kinds {
		at := at.Index(i)
		kind := withBuiltInGroup(k.GroupKind())
		if refused := checkKindAllowed(at, kind, neverPropagated, "propagated"); refused != nil {
			problems = append(problems, refused...)
			continue
		}
		problems = append(problems, validateKindForm(at, k.GroupKind().WithVersion(k.Version))...)
		if k.Kind != "" && seen[kind] {
			problems = append(problems, field.Duplicate(at, kind.String()))
		}
		seen[kind] = true

		modes := []config.KindMode{config.ModeOptIn, config.ModeAll, config.ModeRemove}
		if kind == roleBinding {
			modes = modes[:2] // with mode Remove, a tenant's users would lose their rights in the tree
		}
		problems = append(problems, checkOneOf(at.Child("mode"), k.Mode, modes...)...)
		problems = append(problems, checkOneOf(at.Child("scope"), k.Scope, config.ScopeAuto, config.ScopeCluster, config.ScopeNamespaces)...)
		if (k.Scope == config.ScopeAuto || k.Scope == config.ScopeNamespaces) && kind.Group == roleBinding.Group {
			problems = append(problems, field.Invalid(at.Child("scope"), string(k.Scope),
				"must be Cluster for kinds of "+kind.Group+": only then can the operator revoke rights in every namespace where it granted them"))
		}
	}
	return problems
}

func validateNeverPropagate(at *field.Path, n *config.NeverPropagate) field.ErrorList {
	var problems field.ErrorList
	if n.Name == "" && n.Type == "" && len(n.Labels) == 0 {
		problems = append(problems, field.Required(at, "at least one of name, type and labels"))
	}
	if n.Kind != "" || n.Group != "" {
		problems = append(problems, validateKindForm(at, schema.GroupVersionKind{Group: n.Group, Kind: n.Kind})...)
	}
	if n.Name != "" {
		problems = append(problems, validateGlobPattern(at.Child("name"), n.Name)...)
	}
	if n.Type != "" {
		problems = append(problems, validateGlobPattern(at.Child("type"), n.Type)...)
	}
	return append(problems, validateLabels(at.Child("labels"), n.Labels)...)
}

func validateLabels(at *field.Path, labels map[string]string) field.ErrorList {
	var problems field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if invalid := validation.IsQualifiedName(key); len(invalid) > 0 {
			problems = append(problems, field.Invalid(at, key, "must be a label key: "+strings.Join(invalid, ", ")))
		}
		if invalid := validation.IsValidLabelValue(labels[key]); len(invalid) > 0 {
			problems = append(problems, field.Invalid(at.Key(key), labels[key], "must be a label value: "+strings.Join(invalid, ", ")))
		}
	}
	return problems
}

// validateGenerators refuses generators while the gate PropagateGenerated is not open: users would wait for copies that are never
// written.
func validateGenerators(at *field.Path, generators []config.Generator, open bool) field.ErrorList {
	if len(generators) > 0 && !open {
		return field.ErrorList{field.Forbidden(at, "needs featureGates.PropagateGenerated: true, with which the operator may label what is "+
			"generated")}
	}
	var problems field.ErrorList
	for i, g := range generators {
		problems = append(problems, validateKindForm(at.Index(i), schema.GroupVersionKind{Group: g.Group, Kind: g.Kind})...)
		if slices.Contains(generators[:i], g) {
			problems = append(problems, field.Duplicate(at.Index(i), schema.GroupKind{Group: g.Group, Kind: g.Kind}.String()))
		}
	}
	return problems
}

func validateScrubRate(at *field.Path, s *config.Scrub) field.ErrorList {
	var problems field.ErrorList
	if s.Interval.Duration != 0 {
		problems = append(problems, durationAtLeast(at.Child("interval"), s.Interval, 10*time.Second)...)
	}
	return append(problems, checkBetween(at.Child("objectsPerSecond"), s.ObjectsPerSecond, 1, 10000)...)
}

func validateRetryTimes(at *field.Path, r *config.Retry) field.ErrorList {
	problems := durationBetween(at.Child("min"), r.Min, 100*time.Millisecond, time.Hour)
	problems = append(problems, durationBetween(at.Child("max"), r.Max, 100*time.Millisecond, time.Hour)...)
	if r.Min.Duration > r.Max.Duration {
		problems = append(problems, field.Invalid(at.Child("max"), r.Max.Duration.String(), "must be at least min, "+r.Min.Duration.String()))
	}
	return problems
}
