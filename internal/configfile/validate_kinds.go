package configfile

import (
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// KindPattern matches how a kind is written.
var KindPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// validateKindForm checks how a kind is written. Only a cluster knows whether the kind is served.
func validateKindForm(at *field.Path, kind schema.GroupVersionKind) field.ErrorList {
	var problems field.ErrorList
	if kind.Kind == "" {
		problems = append(problems, field.Required(at.Child("kind"), "a kind such as Secret"))
	} else if !KindPattern.MatchString(kind.Kind) {
		problems = append(problems, field.Invalid(at.Child("kind"), kind.Kind, "must be written as in manifests, such as Secret or ConfigMap"))
	}
	if kind.Version != "" {
		if invalid := validation.IsDNS1035Label(kind.Version); len(invalid) > 0 {
			problems = append(problems, field.Invalid(at.Child("version"), kind.Version, "must be a version such as v1, without its group"))
		}
	}
	group, forgotten := builtInGroups[kind.Kind]
	switch {
	case kind.Group == "" && forgotten:
		problems = append(problems, field.Required(at.Child("group"), fmt.Sprintf("%s is in group %s", kind.Kind, group)))
	case kind.Group != "" && len(validation.IsDNS1123Subdomain(kind.Group)) > 0:
		problems = append(problems, field.Invalid(at.Child("group"), kind.Group,
			"must be a group such as apps, without a version; empty for the core group"))
	}
	return problems
}

// checkKindAllowed refuses kinds that are cluster-scoped, the operator's own, or in refused. verb is the word in the message for what
// can't be done with them, such as "propagated".
func checkKindAllowed(at *field.Path, kind schema.GroupKind, refused map[string][]string, verb string) field.ErrorList {
	switch {
	case slices.Contains(clusterScoped[kind.Group], kind.Kind):
		return field.ErrorList{field.Forbidden(at.Child("kind"), fmt.Sprintf("%q is cluster-scoped", kind.Kind))}
	case isOperatorGroup(kind.Group), slices.Contains(refused[kind.Group], kind.Kind):
		return field.ErrorList{field.Forbidden(at.Child("kind"), fmt.Sprintf("%s can't be %s", kind.Kind, verb))}
	}
	return nil
}

func validateDistribution(at *field.Path, d *config.Distribution) field.ErrorList {
	var problems field.ErrorList
	for i, k := range d.Kinds {
		at := at.Child("kinds").Index(i)
		kind := withBuiltInGroup(k.GroupVersionKind().GroupKind())
		refused := checkKindAllowed(at, kind, neverDistributed, "distributed")
		if refused == nil && kind.Group == rbacGroup {
			refused = field.ErrorList{field.Forbidden(at.Child("kind"), kind.Kind+" can't be distributed")}
		}
		if refused != nil {
			problems = append(problems, refused...)
			continue
		}
		problems = append(problems, validateKindForm(at, k.GroupVersionKind())...)
		if k.Version == "" {
			problems = append(problems, field.Required(at.Child("version"), "a version such as v1"))
		}
		if k.Kind != "" && slices.Contains(d.Kinds[:i], k) {
			problems = append(problems, field.Duplicate(at, kind.String()))
		}
	}
	problems = append(problems, checkBetween(at.Child("maxObjectBytes"), d.MaxObjectBytes, 1024, 1500000)...)
	return append(problems, checkBytesAtLeast(at.Child("maxTotalBytes"), d.MaxTotalBytes, 0)...)
}
