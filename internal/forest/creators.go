package forest

import (
	"cmp"
	"iter"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// CountsFor names whom the LNamespaces count for that a user makes: the user. A service account is nobody of its own, because
// whoever may make one may make as many as they like: one in the tree of a tenant counts for the maker of that tenant, any other
// one for its namespace. Nor is the user that the sudoers of a tenant become: it counts for the maker of the tenant.
func (s *Snapshot) CountsFor(user string) string {
	for range s.tenants.Len() + 1 { // tenants may have made each other by now
		root, isSudo := strings.CutPrefix(user, v1alpha1.SudoUserPrefix)
		account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
		namespace, _, _ := strings.Cut(account, ":")
		switch {
		case isAccount:
			root = s.rootOf(namespace)
		case !isSudo:
			return user
		}
		t := s.Tenant(root)
		switch {
		case t == nil && isSudo:
			return "tenant " + root // which is gone, and whose sudoers are nobody
		case t == nil:
			return "namespace " + namespace
		case t.Creator == "":
			return "tenant " + root
		}
		user = t.Creator
	}
	return user
}

// rootOf is the root in whose tree a namespace counts, sound or halted; the namespace itself if there is none.
func (s *Snapshot) rootOf(name string) string {
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

// Tenants yields all LNamespaces, in no order.
func (s *Snapshot) Tenants() iter.Seq[*Tenant] {
	return func(yield func(*Tenant) bool) {
		for it := s.tenants.Iterator(); !it.Done(); {
			if _, t, _ := it.Next(); !yield(t) {
				return
			}
		}
	}
}

// MadeBefore counts the LNamespaces of the maker of t that come before it: all that have their namespace already, and of the
// others those that are older.
func (s *Snapshot) MadeBefore(t *Tenant) int {
	who, count := s.CountsFor(t.Creator), 0
	for other := range s.Tenants() {
		if other.Name == t.Name || other.Creator == "" || s.CountsFor(other.Creator) != who {
			continue
		}
		if s.Owns(other.Name, other.UID) || cmp.Or(other.Created.Compare(t.Created), strings.Compare(other.Name, t.Name)) < 0 {
			count++
		}
	}
	return count
}
