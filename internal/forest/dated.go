package forest

import (
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// replacedParent stands for the UID of a namespace that may have been gone before the operator started.
const replacedParent = "gone"

// WithRequestDated is the snapshot in which it is noted of the request of namespace, which was there at the start and is as old as asked,
// which parent it means: the namespace of that name, unless that is younger than the object that asks, and namespace has not stood below it.
// Nobody can tell then who was asked for which, and who asks again is asked again. made says by name when namespaces were made.
func (s *Snapshot) WithRequestDated(namespace string, asked time.Time, made map[string]time.Time) *Snapshot {
	h, n := s.Hierarchy(namespace), s.Namespace(namespace)
	if h == nil || n == nil || h.Parent == nil || s.Namespace(*h.Parent) == nil {
		return s
	}
	dated := *h
	dated.ParentUID = s.Namespace(*h.Parent).UID
	if made[*h.Parent].After(asked) && n.Annotations[v1alpha1.AnnotationParentUID] != dated.ParentUID {
		dated.ParentUID = replacedParent
	}
	return s.WithHierarchy(&dated)
}
