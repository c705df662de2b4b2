package rolevetting

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// guarded are what holds the walls between tenants; who can write one of these gets out of the tree, or over its limits.
var guarded = []schema.GroupResource{
	{Resource: "namespaces"}, {Resource: "namespaces/status"}, {Resource: "namespaces/finalize"},
	{Group: v1alpha1.GroupVersion.Group, Resource: "lnamespaces"},
	{Resource: "resourcequotas"}, {Resource: "nodes"},
}

var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// Dangerous says whether a right lets its holder change what the walls stand on, take rights that weren't given, or more than
// anyone can tell today, by a *. Names don't make it less so.
func (r Right) Dangerous() bool {
	switch {
	case strings.Contains(r.APIGroup, "*"), strings.Contains(r.Resource, "*"), strings.Contains(r.Verb, "*"):
		return true
	case r.Verb == "escalate", r.Verb == "bind":
		return true
	case r.Verb == "impersonate", strings.HasPrefix(r.Verb, "impersonate:"): // the latter since Kubernetes 1.35
		// The built-in edit may act as the service accounts of its namespace, whose tokens it may take anyway.
		return r.APIGroup != "" || r.Resource != "serviceaccounts"
	}
	return slices.Contains(writes, r.Verb) && slices.Contains(guarded, schema.GroupResource{Group: r.APIGroup, Resource: r.Resource})
}
