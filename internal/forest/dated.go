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
// managedFields are no source of a later time: a user who may update the object may write any time there. For the same
// reason a ParentUID that RequestedParent has found can only refuse the namespace that has the name now.
func WithRequestDated(s *Snapshot, namespace string, asked time.Time, made map[string]time.Time) *Snapshot {
	h, n := s.Hierarchy(namespace), s.Namespace(namespace)
	if h == nil || n == nil || h.Parent == nil {
		return s
	}
	now := s.Namespace(*h.Parent)
	if now == nil || h.ParentUID != "" && h.ParentUID != now.UID {
		return s
	}
	dated := *h
	dated.ParentUID = now.UID
	if made[*h.Parent].After(asked) && !v1alpha1.RecordsUID(n.Annotations[v1alpha1.AnnotationParentUID], dated.ParentUID) {
		dated.ParentUID = unknownParent
	}
	return s.WithHierarchy(&dated)
}

// RequestedParent returns the UID of the namespace that spec.parent of hc means, as the operator has recorded it in the
// status; "" if it has not.
func RequestedParent(hc *v1alpha1.HierarchyConfiguration) string {
	if hc.Status.ObservedGeneration != hc.Generation {
		return "" // the request may be another one
	}
	return hc.Status.RequestedParentUID
}

// FindRequestedParent returns what the status of the HierarchyConfiguration of the namespace called name should record:
// the UID of the namespace that its request means, while the request is not carried out; "" if it is not known.
func FindRequestedParent(s *Snapshot, name string) string {
	h := s.Hierarchy(name)
	if !RequestOf(s, name).Asked || h.ParentUID == unknownParent {
		return ""
	}
	return h.ParentUID
}
