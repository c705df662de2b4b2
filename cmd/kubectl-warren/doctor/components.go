package doctor

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/warren-tenancy/warren/internal/manifests"
)

// checkComponents checks the policies of optional components, which not every overlay has.
func checkComponents(policies []admissionv1.ValidatingAdmissionPolicy, bindings []admissionv1.ValidatingAdmissionPolicyBinding,
	operator string) []Check {
	strict, distribution := Check{}, Check{}
	if findPolicy(policies, manifests.StrictPlacement.Name) == nil {
		strict = warnOf("", "not installed: the operator's token may bring every namespace that is not protected into a tree",
			"add component strict-placement to your overlay, unless tenants are to take in existing namespaces by themselves")
	} else {
		strict = checkPolicy(manifests.StrictPlacement, policies, bindings, operator)
	}
	open := cageOf(policies)
	switch {
	case findPolicy(policies, manifests.Distribution.Name) != nil:
		if distribution = checkPolicy(manifests.Distribution, policies, bindings, operator); distribution.Status == OK {
			distribution = open.checkOverwrite()
		}
	case open != cageClosed:
		distribution = failOf("", "the operator's token may write distributed copies, but policy "+manifests.Prefix+manifests.Distribution.Name+
			" is missing: a user who may write a ResourceDistribution can make the operator write in any namespace", applyAgain)
	default:
		distribution = passOf("", "not installed: the operator's token may write no distributed copy")
	}
	strict.Name, distribution.Name = "component/strict-placement", "component/distribution"
	return []Check{strict, distribution}
}

func findPolicy(policies []admissionv1.ValidatingAdmissionPolicy, name string) *admissionv1.ValidatingAdmissionPolicy {
	i := slices.IndexFunc(policies, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == manifests.Prefix+name })
	if i < 0 {
		return nil
	}
	return &policies[i]
}

// cage describes what the admission policy operator-cage-distribution lets the operator's token do with distributed
// copies.
type cage string

const (
	cageClosed    cage = "closed"    // the token may write no copy
	cageCopies    cage = "copies"    // component distribution: the token may write objects that were created as copies
	cageOverwrite cage = "overwrite" // component distribution-overwrite: the token may take over other objects, too
)

// cageOf finds the cage by the policy's variables, which differ between the components that change the policy.
func cageOf(policies []admissionv1.ValidatingAdmissionPolicy) cage {
	policy := findPolicy(policies, "operator-cage-distribution")
	has := func(name string) bool {
		return slices.ContainsFunc(policy.Spec.Variables, func(v admissionv1.Variable) bool { return v.Name == name })
	}
	switch {
	case policy == nil: // the check of that policy reports that it is missing
		return cageClosed
	case has("takenOver"):
		return cageOverwrite
	case has("handedBack"):
		return cageCopies
	}
	return cageClosed
}

// checkOverwrite returns the check for a cluster that has the policy on ResourceDistributions.
func (c cage) checkOverwrite() Check {
	switch c {
	case cageOverwrite:
		return passOf("", "in force, with distribution-overwrite: the operator's token may take over any Secret or ConfigMap that is "+
			"not protected")
	case cageCopies:
		return passOf("", "in force; conflictPolicy AdoptIdentical and Overwrite need component distribution-overwrite, which is not installed")
	}
	return failOf("", "policy "+manifests.Prefix+manifests.Distribution.Name+" is installed, but the cage does not allow the "+
		"operator's token to write distributed copies: nothing is distributed", applyAgain)
}
