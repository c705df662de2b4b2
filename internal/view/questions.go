package view

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Owns reports whether the namespace called root is the one that the LNamespace with this UID made or adopted.
func (v *View) Owns(root string, uid types.UID) bool { return v.Snapshot().Owns(root, string(uid)) }

// UID returns the UID of the namespace called name; "" if there is none.
func (v *View) UID(name string) types.UID {
	if n := v.Snapshot().Namespace(name); n != nil {
		return types.UID(n.UID)
	}
	return ""
}

// IsTerminating reports whether the namespace called name is being deleted.
func (v *View) IsTerminating(name string) bool {
	n := v.Snapshot().Namespace(name)
	return n != nil && n.Terminating
}

// Living returns root itself, and those namespaces below it that are not terminating.
func (v *View) Living(root string) []string {
	s := v.Snapshot()
	return append([]string{root}, slices.DeleteFunc(s.Subtree(root), func(name string) bool { return s.Namespace(name).Terminating })...)
}

// BelongsTo reports whether namespace counts as part of the tree of root for decisions to refuse requests, even while
// it is halted.
func (v *View) BelongsTo(namespace, root string) bool {
	return v.Snapshot().BelongsTo(namespace, root)
}

// InTree reports whether namespace is root or is below it, and is not halted.
func (v *View) InTree(namespace, root string) bool { return v.Snapshot().InTree(namespace, root) }
