package forest

import (
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// KeepsNamespace says why the namespace of the SubNamespace name in parent, which goes, is not deleted; "" if it is to be deleted. The
// message is empty where there is nothing to delete.
func (s *Snapshot) KeepsNamespace(parent, name string) (reason v1alpha1.Reason, message string) {
	child := s.Namespace(name)
	switch {
	case child == nil || child.Terminating:
		return v1alpha1.ReasonNamespaceDeleted, ""
	case !child.BoundTo(parent):
		return v1alpha1.ReasonNamespaceReleased, "the namespace does not belong to this SubNamespace; it stays"
	}
	if s.Protected(name) {
		return v1alpha1.ReasonDeletionRefused, "namespace " + name + " is protected, by its name in protectedNamespaces of the configuration or by its label; it stays"
	}
	if why := s.HeldByChildren(name); why != "" {
		return v1alpha1.ReasonDeletionRefused, why
	}
	if p := s.Namespace(parent); (p == nil || p.Terminating) && !s.CascadingAllowed(name) {
		return v1alpha1.ReasonNamespaceReleased, "the parent goes without permission to delete what is below it; the namespace stays"
	}
	return "", ""
}

// Bequest is what is written on a namespace that goes with sub-namespaces below it, before it is deleted: that they may go, too. The
// ancestor that said so is often gone before the contents of this one are deleted, and nobody else would know.
func (s *Snapshot) Bequest(n *Namespace) Change {
	if n.Annotations[v1alpha1.AnnotationCascading] == v1alpha1.True || s.rules.AllowCascading || len(s.BoundChildren(n.Name)) == 0 {
		return Change{}
	}
	yes := v1alpha1.True
	return Change{Annotations: map[string]*string{v1alpha1.AnnotationCascading: &yes}}
}
