package forest

import (
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// replacedParent is the value of Hierarchy.ParentUID where the namespace that was asked for may have been deleted before the operator
// started. No UID equals it.
const replacedParent = "gone"

// WithRequestDated returns the snapshot in which the request of namespace's HierarchyConfiguration names its parent by UID. It is meant
// for requests that existed when the operator started. asked is the time of the request; made holds the creation times of namespaces by
// name. The parent is the namespace that has the name now. But if that namespace is younger than the request, and is not the recorded
// parent of namespace, it is unknown which parent was meant. Then ParentUID becomes replacedParent, and the user has to ask again.
func WithRequestDated(s *Snapshot, namespace string, asked time.Time, made map[string]time.Time) *Snapshot {
	h, n := s.Hierarchy(namespace), s.Namespace(namespace)
	if h == nil || n == nil || h.Parent == nil || s.Namespace(*h.Parent) == nil {
		return s
	}
	dated := *h
	dated.ParentUID = s.Namespace(*h.Parent).UID
	if made[*h.Parent].After(asked) && !v1alpha1.RecordsUID(n.Annotations[v1alpha1.AnnotationParentUID], dated.ParentUID) {
		dated.ParentUID = replacedParent
	}
	return s.WithHierarchy(&dated)
}
