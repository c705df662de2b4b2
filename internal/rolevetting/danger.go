package rolevetting

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// guarded are the resources on which the separation of tenants rests: a user who can write one of them gets out of the tree, or
// over its limits.
var guarded = []schema.GroupResource{
	{Resource: "namespaces"}, {Resource: "namespaces/status"}, {Resource: "namespaces/finalize"},
	{Group: v1alpha1.GroupVersion.Group, Resource: "lnamespaces"},
	{Resource: "resourcequotas"}, {Resource: "nodes"},
}

var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// mirrors are the API groups of OpenShift whose kinds stand for namespaces, RBAC, users or privileges of Pods.
var mirrors = []string{"authorization.openshift.io", "oauth.openshift.io", "project.openshift.io", "security.openshift.io",
	"user.openshift.io"}

// Dangerous reports whether a right lets its holder write a guarded resource, or gain rights that nobody granted. A right with a * is
// dangerous, too, because nobody knows today what it will include. The exception is every verb on a single kind that is not part of the
// platform, as the Operator Lifecycle Manager adds it to the built-in role admin for each kind that it installs. A right that holds for
// some names only is just as dangerous.
func (r Right) Dangerous() bool {
	switch {
	case strings.Contains(r.APIGroup, "*"), strings.Contains(r.Resource, "*"):
		return true
	case r.Verb == "*":
		return isPlatformGroup(r.APIGroup)
	case strings.Contains(r.Verb, "*"), r.Verb == "escalate", r.Verb == "bind":
		return true
	case r.Verb == "impersonate", strings.HasPrefix(r.Verb, "impersonate:"): // the latter since Kubernetes 1.35
		// The built-in role edit allows to impersonate the service accounts of its namespace, whose tokens it can get anyway.
		return r.APIGroup != "" || r.Resource != "serviceaccounts"
	}
	return slices.Contains(writes, r.Verb) && slices.Contains(guarded, schema.GroupResource{Group: r.APIGroup, Resource: r.Resource})
}

// isPlatformGroup reports whether an API group is one of Kubernetes, of Warren, or one of mirrors. On kinds of these groups, the API server
// checks verbs such as impersonate, bind, escalate, approve, sign and use, and later versions may add more. Kubernetes reserves the groups
// without a dot and those below k8s.io for itself.
func isPlatformGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") || group == v1alpha1.GroupVersion.Group ||
		slices.Contains(mirrors, group)
}
