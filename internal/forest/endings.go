package forest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// KeepsNamespace explains why the operator doesn't delete the namespace of the SubNamespace name in parent when that
// SubNamespace is deleted. The reason is "" if the namespace is to be deleted; the message is "" where there is no
// namespace left to delete.
func KeepsNamespace(s *Snapshot, parent, name string) (reason v1alpha1.Reason, message string) {
	child := s.Namespace(name)
	switch {
	case child == nil || child.Terminating:
		return v1alpha1.ReasonNamespaceDeleted, ""
	case !child.BoundTo(parent):
		return v1alpha1.ReasonNamespaceReleased, "the namespace does not belong to this SubNamespace; the namespace stays"
	}
	if s.Protected(name) {
		return v1alpha1.ReasonDeletionRefused, "namespace " + name + " is protected, by its name in protectedNamespaces of the configuration " +
			"or by its label; the namespace stays"
	}
	if why := HeldByChildren(s, name); why != "" {
		return v1alpha1.ReasonDeletionRefused, why
	}
	// A parent that is deleted takes its SubNamespaces along, whether or not anybody meant that.
	if p := s.Namespace(parent); (p == nil || p.Terminating) && !CascadingAllowed(s, name) {
		return v1alpha1.ReasonNamespaceReleased, "the parent is deleted, but cascading deletion is not allowed; the namespace stays"
	}
	return "", ""
}

// Bequest is the change that is written on n before the operator deletes n together with the sub-namespaces below it:
// the permission to delete these, too. The ancestor that gave the permission is often gone before the contents of n are
// deleted, and no other object would record the permission.
func Bequest(s *Snapshot, n *Namespace) Change {
	if n.Annotations[v1alpha1.AnnotationCascading] == v1alpha1.True || s.rules.AllowCascading || len(BoundChildren(s, n.Name)) == 0 {
		return Change{}
	}
	yes := v1alpha1.True
	return Change{Annotations: map[string]*string{v1alpha1.AnnotationCascading: &yes}}
}

// CascadingAllowed reports whether the deletion of the namespace called name may delete what is below it. That is so if
// the configuration allows every such deletion, or if the namespace or an ancestor has the annotation that allows it.
func CascadingAllowed(s *Snapshot, name string) bool {
	if s.rules.AllowCascading {
		return true
	}
	seen := map[string]bool{}
	for n := s.Namespace(name); n != nil && !seen[n.Name]; n = s.Namespace(n.Parent()) {
		if n.Annotations[v1alpha1.AnnotationCascading] == v1alpha1.True {
			return true
		}
		seen[n.Name] = true
	}
	return false
}

// HeldByChildren explains why the namespace called name may not be deleted: it has bound children, and cascading
// deletion is not allowed. It returns "" if the namespace may be deleted.
func HeldByChildren(s *Snapshot, name string) string {
	children := HoldingChildren(s, name)
	if len(children) == 0 {
		return ""
	}
	return HeldBy(name, Few(children))
}

// HoldingChildren returns the bound children that forbid the deletion of the namespace called name; nil where they may
// be deleted with it.
func HoldingChildren(s *Snapshot, name string) []string {
	if CascadingAllowed(s, name) {
		return nil
	}
	return BoundChildren(s, name)
}

// BoundChildren are the children whose life belongs to a SubNamespace and that are not terminating.
func BoundChildren(s *Snapshot, name string) []string {
	var bound []string
	for _, child := range s.Children(name) {
		if n := s.Namespace(child); n.Bound() && !n.Terminating {
			bound = append(bound, child)
		}
	}
	return bound
}

// DescribeRemaining returns what keeps a terminating namespace from ending, as its conditions report it; "" if they
// report nothing.
func DescribeRemaining(conditions []corev1.NamespaceCondition) string {
	var causes []string
	for _, c := range conditions {
		if strings.HasPrefix(string(c.Type), "Namespace") && c.Status == corev1.ConditionTrue {
			causes = append(causes, c.Message)
		}
	}
	return strings.Join(causes, "; ")
}

// LacksSub reports whether the namespace called name is bound, but has no SubNamespace in its parent, as after the
// restore of a backup that left out its parent.
func LacksSub(s *Snapshot, name string) bool {
	n := s.Namespace(name)
	return n != nil && n.Parent() != "" && n.Bound() && !n.Terminating && s.Sub(n.Parent(), name) == nil
}

// MissingSub returns the words about a namespace that lacks its SubNamespace, and how a user creates it.
func MissingSub(parent, name string) string {
	return fmt.Sprintf("bound, but its SubNamespace %s/%s is missing: kubectl warren create %s -n %s puts it back", parent, name, name,
		parent)
}
