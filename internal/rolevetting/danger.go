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

// Dangerous reports whether a right lets its holder write a guarded resource, or gain rights that nobody granted. A right with a * is
// dangerous, too, because nobody knows today what it will include. A right that holds for some names only is just as dangerous.
func (r Right) Dangerous() bool {
	switch {
	case strings.Contains(r.APIGroup, "*"), strings.Contains(r.Resource, "*"), strings.Contains(r.Verb, "*"):
		return true
	case r.Verb == "escalate", r.Verb == "bind":
		return true
	case r.Verb == "impersonate", strings.HasPrefix(r.Verb, "impersonate:"): // the latter since Kubernetes 1.35
		// The built-in role edit allows to impersonate the service accounts of its namespace, whose tokens it can get anyway.
		return r.APIGroup != "" || r.Resource != "serviceaccounts"
	}
	return slices.Contains(writes, r.Verb) && slices.Contains(guarded, schema.GroupResource{Group: r.APIGroup, Resource: r.Resource})
}
