package webhooks

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// matchingBillingDefaults returns the billing defaults that apply to a user, in the order of the configuration.
func matchingBillingDefaults(defaults []config.BillingDefault, username string, groups []string) []v1alpha1.Billing {
	var matching []v1alpha1.Billing
	for _, d := range defaults {
		anybody := d.User == "" && d.Group == ""
		if anybody || d.User != "" && d.User == username || d.Group != "" && slices.Contains(groups, d.Group) {
			matching = append(matching, d.Billing)
		}
	}
	return matching
}

// agreesWithDefault reports whether every field that is stated has the value of the default; an empty field agrees with
// any value.
func agreesWithDefault(stated, by v1alpha1.Billing) bool {
	return (stated.CostCenter == "" || stated.CostCenter == by.CostCenter) &&
		(stated.Owner == "" || stated.Owner == by.Owner) &&
		(len(stated.Labels) == 0 || maps.Equal(stated.Labels, by.Labels))
}

// fillEmptyBillingFields fills the empty fields from the first default that agrees with the stated ones. Where none
// agrees, nothing is filled, because the fields of two accounts must not be mixed.
func fillEmptyBillingFields(stated v1alpha1.Billing, matching []v1alpha1.Billing) v1alpha1.Billing {
	i := slices.IndexFunc(matching, func(d v1alpha1.Billing) bool { return agreesWithDefault(stated, d) })
	if i < 0 {
		return stated
	}
	filled := stated
	if filled.CostCenter == "" {
		filled.CostCenter = matching[i].CostCenter
	}
	if filled.Owner == "" {
		filled.Owner = matching[i].Owner
	}
	if len(filled.Labels) == 0 {
		filled.Labels = matching[i].Labels
	}
	return filled
}

// billingAllowed checks the billing that a user who is no cluster admin states, where the configuration has defaults:
// it must agree with one of those that apply to the user.
func billingAllowed(stated v1alpha1.Billing, matching []v1alpha1.Billing) field.ErrorList {
	if slices.ContainsFunc(matching, func(d v1alpha1.Billing) bool { return agreesWithDefault(stated, d) }) ||
		agreesWithDefault(stated, v1alpha1.Billing{}) {
		return nil
	}
	at := spec.Child("billing")
	problems := checkAmongDefaults(at.Child("costCenter"), stated.CostCenter, matching,
		func(b v1alpha1.Billing) string { return b.CostCenter })
	problems = append(problems, checkAmongDefaults(at.Child("owner"), stated.Owner, matching,
		func(b v1alpha1.Billing) string { return b.Owner })...)
	if len(problems) == 0 {
		problems = field.ErrorList{field.Forbidden(at, "costCenter, owner and labels must be those of one billing default that applies to you")}
	}
	return problems
}

func checkAmongDefaults(at *field.Path, value string, matching []v1alpha1.Billing, of func(v1alpha1.Billing) string) field.ErrorList {
	var allowed []string
	for _, b := range matching {
		if of(b) != "" {
			allowed = append(allowed, of(b))
		}
	}
	slices.Sort(allowed)
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	if len(allowed) == 0 {
		return field.ErrorList{field.Forbidden(at, "no billing default that applies to you sets this field: leave it out, or ask a "+
			"cluster admin")}
	}
	return field.ErrorList{field.NotSupported(at, value, slices.Compact(allowed))}
}
