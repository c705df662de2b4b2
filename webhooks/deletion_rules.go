package webhooks

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/warren-tenancy/warren/internal/forest"
)

// checkDeletion checks the deletion of the namespace called name and of its bound descendants.
func checkDeletion(s *forest.Snapshot, name string, g *visibility) findings {
	var f findings
	if holding := forest.HoldingChildren(s, name); len(holding) > 0 {
		f.addProblems(field.Forbidden(field.NewPath("metadata", "name"), forest.HeldBy(name, g.joinVisibleTexts(holding))))
	}
	if left := unboundChildren(s, name); len(left) > 0 {
		f.addWarnings(name + " has children that are not bound; they stay, and are halted until they have a parent again: " +
			g.joinVisibleTexts(left))
	}
	return f
}

// unboundChildren returns the children that stay when their parent is deleted.
func unboundChildren(s *forest.Snapshot, name string) []string {
	return slices.DeleteFunc(s.Children(name), func(child string) bool {
		n := s.Namespace(child)
		return n.Bound() || n.Terminating
	})
}
