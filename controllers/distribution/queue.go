package distribution

import "github.com/warren-tenancy/warren/internal/copying"

// key is one piece of work: a review of all targets of a distribution, or of one namespace where that is said.
type key struct{ distribution, namespace string }

// turnOf says when a key is worked on: reviews first, then writes, in turns by distribution. Distributions belong to the cluster, not to
// its tenants.
func turnOf(k key) copying.Turn[string] {
	if k.namespace == "" {
		return copying.Turn[string]{}
	}
	return copying.Turn[string]{Class: 1, Lane: k.distribution}
}
