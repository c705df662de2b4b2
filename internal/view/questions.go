package view

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Owns says whether the namespace called root is the one that the LNamespace with this UID made or adopted.
func (x *View) Owns(root string, uid types.UID) bool { return x.Snapshot().Owns(root, string(uid)) }

// UID is that of the namespace called name; "" if there is none.
func (x *View) UID(name string) types.UID {
	if n := x.Snapshot().Namespace(name); n != nil {
		return types.UID(n.UID)
	}
	return ""
}

// Living are root and the namespaces below it that don't terminate.
func (x *View) Living(root string) []string {
	s := x.Snapshot()
	return append([]string{root}, slices.DeleteFunc(s.Subtree(root), func(name string) bool { return s.Namespace(name).Terminating })...)
}

// BelongsTo says whether namespace counts as part of the tree of root where something is refused because of that, be it halted.
func (x *View) BelongsTo(namespace, root string) bool {
	return x.Snapshot().BelongsTo(namespace, root)
}

// InTree says whether namespace is root or lies below it.
func (x *View) InTree(namespace, root string) bool { return x.Snapshot().InTree(namespace, root) }
