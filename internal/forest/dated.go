package forest

import (
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// unknownParent is the value of Hierarchy.ParentUID where the namespace that was asked for may have been replaced
// before the operator started. No UID equals it.
const unknownParent = "unknown"

// WithRequestDated returns the snapshot in which the request of namespace's HierarchyConfiguration names its parent by
// UID. It is meant for requests that existed when the operator started. asked is when the object was created; made
// holds the creation times of namespaces by name. The parent is the namespace that has the name now. But if that
// namespace is younger than the object, and is not the recorded parent of namespace, it is unknown which parent was
// meant. Then ParentUID becomes unknownParent, and the user has to ask again, or a cluster admin marks the namespace.
// managedFields are no source of a later time: a user who may update the object may write any time there.
func WithRequestDated(s *Snapshot, namespace string, asked time.Time, made map[string]time.Time) *Snapshot {
	h, n := s.Hierarchy(namespace), s.Namespace(namespace)
	if h == nil || n == nil || h.Parent == nil || s.Namespace(*h.Parent) == nil {
		return s
	}
	dated := *h
	dated.ParentUID = s.Namespace(*h.Parent).UID
	if made[*h.Parent].After(asked) && !v1alpha1.RecordsUID(n.Annotations[v1alpha1.AnnotationParentUID], dated.ParentUID) {
		dated.ParentUID = unknownParent
	}
	return s.WithHierarchy(&dated)
}
