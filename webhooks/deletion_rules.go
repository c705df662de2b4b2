package webhooks

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/warren-tenancy/warren/internal/forest"
)

// deletion judges the deletion of the namespace called name and of its bound descendants.
func deletion(s *forest.Snapshot, name string, g *sight) findings {
	var f findings
	if holding := forest.HoldingChildren(s, name); len(holding) > 0 {
		f.add(field.Forbidden(field.NewPath("metadata", "name"), forest.HeldBy(name, g.list(holding))))
	}
	if left := unbound(s, name); len(left) > 0 {
		f.warn(name + " has children that are not bound; they stay, and are halted until they have a parent again: " + g.list(left))
	}
	return f
}

// unbound returns the children that stay when their parent is deleted.
func unbound(s *forest.Snapshot, name string) []string {
	return slices.DeleteFunc(s.Children(name), func(child string) bool {
		n := s.Namespace(child)
		return n.Bound() || n.Terminating
	})
}
