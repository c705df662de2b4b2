package forest

import (
	"cmp"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// CountsFor returns on whose account the LNamespaces that user makes are counted, against the limit of LNamespaces per maker. A
// person or another user counts for itself. A service account doesn't, because whoever may create one may create any number: a
// service account in a tenant's tree counts for the maker of that tenant, any other one for its namespace. The user that the
// sudoers of a tenant impersonate counts for the maker of that tenant.
func CountsFor(s *Snapshot, user string) string {
	for range s.tenants.Len() + 1 { // the makers of tenants may form a cycle, so the climb is bounded
		root, isSudo := strings.CutPrefix(user, v1alpha1.SudoUserPrefix)
		account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
		namespace, _, _ := strings.Cut(account, ":")
		switch {
		case isAccount:
			root = treeTop(s, namespace)
		case !isSudo:
			return user
		}
		t := s.Tenant(root)
		switch {
		case t == nil && isSudo:
			return "tenant " + root // the tenant is gone, so its sudoers have no maker to count for
		case t == nil:
			return "namespace " + namespace
		case t.Creator == "":
			return "tenant " + root
		}
		user = t.Creator
	}
	return user
}

// treeTop returns the root in whose tree the namespace called name counts, sound or halted, or name itself where there is no such
// root.
func treeTop(s *Snapshot, name string) string {
	seen := map[string]bool{}
	for at := name; !seen[at]; {
		seen[at] = true
		n := s.Namespace(at)
		if n == nil || n.Parent() == "" {
			return at
		}
		if s.Namespace(n.Parent()) == nil {
			if top := n.FormerRoot(); top != "" {
				return top
			}
		}
		at = n.Parent()
	}
	return name
}

// CountMadeBefore counts the LNamespaces that count for the same maker as t and come before t: those that own their namespace already,
// and of the others the older ones (at the same age, by name).
func CountMadeBefore(s *Snapshot, t *Tenant) int {
	who, count := CountsFor(s, t.Creator), 0
	for other := range s.Tenants() {
		if other.Name == t.Name || other.Creator == "" || CountsFor(s, other.Creator) != who {
			continue
		}
		if s.Owns(other.Name, other.UID) || cmp.Or(other.Created.Compare(t.Created), strings.Compare(other.Name, t.Name)) < 0 {
			count++
		}
	}
	return count
}
