package forest

import (
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// KeepsNamespace says why the operator doesn't delete the namespace of the SubNamespace name in parent when that SubNamespace is
// deleted. The reason is "" if the namespace is to be deleted; the message is "" where there is no namespace left to delete.
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

// Bequest is the change that is written on n before the operator deletes n together with the sub-namespaces below it: the
// permission for them to be deleted, too. The ancestor that gave the permission is often gone before the contents of n are deleted,
// and nothing else would record it.
func (s *Snapshot) Bequest(n *Namespace) Change {
	if n.Annotations[v1alpha1.AnnotationCascading] == v1alpha1.True || s.rules.AllowCascading || len(s.BoundChildren(n.Name)) == 0 {
		return Change{}
	}
	yes := v1alpha1.True
	return Change{Annotations: map[string]*string{v1alpha1.AnnotationCascading: &yes}}
}
