package forest

import (
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// BelongsTo reports whether the namespace called name counts as part of the tree of root when requests are refused. It
// does if it is the root or if its labels lead there. It also does if its annotation ancestry, or that of a namespace
// above it, begins with root. Unlike InTree, BelongsTo counts a namespace that is halted, in a cycle or protected: the
// users of the tree keep their rights in it.
func (s *Snapshot) BelongsTo(name, root string) bool {
	seen := map[string]bool{}
	for !seen[name] {
		if name == root {
			return true
		}
		seen[name] = true
		n := s.Namespace(name)
		if n == nil || n.Parent() == "" {
			return false
		}
		if n.FormerRoot() == root {
			return true
		}
		name = n.Parent()
	}
	return false
}

// StoodBelow reports whether the annotation ancestry of the namespace called name contains ancestor. The annotation has
// the last path from a root to that namespace.
func (s *Snapshot) StoodBelow(name, ancestor string) bool {
	n := s.Namespace(name)
	return n != nil && slices.Contains(strings.Split(n.Annotations[v1alpha1.AnnotationAncestry], "/"), ancestor)
}

// FormerAncestors returns the namespaces above the namespace called name by its annotation ancestry, the nearest first. Some
// of them may be gone, or be elsewhere by now.
func (s *Snapshot) FormerAncestors(name string) []string {
	n := s.Namespace(name)
	if n == nil || n.Annotations[v1alpha1.AnnotationAncestry] == "" {
		return nil
	}
	path := strings.Split(n.Annotations[v1alpha1.AnnotationAncestry], "/")
	above := path[:len(path)-1]
	slices.Reverse(above)
	return above
}

// HasEnded reports whether the namespace called name in one snapshot is gone in a later one, or was made anew.
func HasEnded(before, now *Snapshot, name string) bool {
	was, is := before.Namespace(name), now.Namespace(name)
	return was != nil && (is == nil || is.UID != was.UID)
}

// RootOf returns the root of the tree that the namespace called name is in. For a halted sub-namespace, which still
// belongs to its tree, it is the root that the annotation ancestry names. It is "" for a namespace in no tree.
func (s *Snapshot) RootOf(name string) string {
	n, place := s.Namespace(name), s.Place(name)
	switch {
	case place.InTree():
		return place.Path[0]
	case n == nil || n.Parent() == "":
		return ""
	}
	return n.FormerRoot()
}

// TenantOf is the LNamespace that made or adopted the namespace called root; nil if none did.
func (s *Snapshot) TenantOf(root string) *Tenant {
	if tenant := s.Tenant(root); tenant != nil && s.Owns(root, tenant.UID) {
		return tenant
	}
	return nil
}

// Owns reports whether the namespace called root is the one that the LNamespace with this UID made or adopted.
func (s *Snapshot) Owns(root, uid string) bool {
	n := s.Namespace(root)
	return n != nil && uid != "" && n.TenantUID() == uid
}
