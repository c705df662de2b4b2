package forest

import (
	"cmp"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// IsMadeByAdmin reports whether a cluster admin made the LNamespace: those of all other users name their creator.
func (t *Tenant) IsMadeByAdmin() bool { return t.Creator == "" }

// describeMaker returns what a mark names to let the LNamespace adopt a namespace: the user who made it, or the group
// of all cluster admins.
func (t *Tenant) describeMaker() string { return cmp.Or(t.Creator, v1alpha1.MarkClusterAdmins) }

// CountsFor returns the name under which the LNamespaces that user makes are counted, against the limit of LNamespaces
// per maker. A person counts under their own name. A service account doesn't, because whoever may create one may create
// any number. If it is in a tenant's tree, it counts for the maker of that tenant, otherwise for its namespace. The
// user that the sudoers of a tenant impersonate counts for the maker of that tenant.
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

// treeTop returns the topmost namespace above name by the labels parent, halted or not. Where a parent is missing, it
// returns the root that the annotation ancestry names, if any. In a cycle it returns name itself.
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

// CountMadeBefore counts the LNamespaces that count for the same maker as t and come before t. Those that own their
// namespace already come before t. Of the others, the older ones do (at the same age, by name).
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
