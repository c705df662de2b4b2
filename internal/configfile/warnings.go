package configfile

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// podSecurityEnforce is the label that decides which pods a namespace admits.
const podSecurityEnforce = "pod-security.kubernetes.io/enforce"

// Warnings returns what is valid but probably not meant, each as "path: sentence".
func Warnings(c *config.OperatorConfiguration) []string {
	var warnings []string
	warn := func(at *field.Path, format string, args ...any) {
		warnings = append(warnings, at.String()+": "+fmt.Sprintf(format, args...))
	}
	if !c.Inheritance.Labels.Match(podSecurityEnforce) {
		warn(field.NewPath("inheritance", "labels"), "nothing matches %s: sub-namespaces don't get the level of pod security of their root",
			podSecurityEnforce)
	}
	at := field.NewPath("subNamespaces")
	for i, pattern := range c.SubNamespaces.Labels {
		if (config.Globs{pattern}).Match(podSecurityEnforce) {
			warn(at.Child("labels").Index(i), "%q matches %s: a tenant may choose the level of pod security of its sub-namespaces, but "+
				"none below the level that comes from above", pattern, podSecurityEnforce)
		}
	}
	for i, policy := range c.SubNamespaces.NamingPolicies {
		if !isNamePossible(policy.Match) {
			warn(at.Child("namingPolicies").Index(i).Child("match"),
				"%q matches no name of a namespace, which has a-z, 0-9 and - only: no sub-namespace can be made in these trees", policy.Match)
		}
		if !isAnchoredAtStart(policy.Match) {
			warn(at.Child("namingPolicies").Index(i).Child("match"), "%q does not begin with ^: it matches anywhere in a name", policy.Match)
		}
	}
	narrow := func(k config.PropagatedKind) bool { return k.Scope != config.ScopeCluster }
	if c.Propagation.BindOwnRole && !slices.ContainsFunc(c.Propagation.Kinds, narrow) {
		warn(field.NewPath("propagation", "bindOwnRole"),
			"true has no effect, because every kind has scope Cluster: give scope Namespaces or Auto to the kinds that the operator may not watch "+
				"in the whole cluster")
	}
	if !slices.ContainsFunc(config.ControllerNames(), c.Enabled) {
		warn(field.NewPath("controllers"), "this list starts no controller: add \"*\" to run those that are not named")
	}
	return warnings
}
