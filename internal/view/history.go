package view

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/internal/forest"
)

// history holds what the watches have brought and no snapshot has. It has no lock: the view's lock guards it.
type history struct {
	version string // highest resourceVersion of a Namespace that the watch has brought
	// made holds the creation times of Namespaces, asked those of HierarchyConfigurations by namespace. Both are nil
	// once the view is synced.
	made, asked map[string]time.Time
	// answered are the names of Namespaces that an answer has shown before the watch.
	answered map[string]bool
	// unmet are, by the parent's name, the namespaces whose HierarchyConfigurations ask for a parent that the view did
	// not have when the request came. The watches are independent: the parent may have existed already.
	unmet map[string][]string
}

func newHistory() history {
	return history{made: map[string]time.Time{}, asked: map[string]time.Time{}, answered: map[string]bool{}, unmet: map[string][]string{}}
}

// isStarting reports whether the view isn't synced yet.
func (h *history) isStarting() bool { return h.made != nil }

// recordNamespace records a Namespace that the watch has brought.
func (h *history) recordNamespace(n *metav1.PartialObjectMetadata) {
	if h.version == "" {
		h.version = n.ResourceVersion
	}
	h.recordVersion(n.ResourceVersion)
	if h.isStarting() {
		h.made[n.Name] = n.CreationTimestamp.Time
	}
}

// recordVersion records the resourceVersion of a Namespace that the watch has brought, or of its deletion.
func (h *history) recordVersion(version string) {
	if forest.IsNewer(version, h.version) {
		h.version = version
	}
}

// datePlacements returns s with the UID of the parent in each HierarchyConfiguration that existed at the start and asks
// for a parent (see forest.WithRequestDated). It is called once, when the snapshot is complete.
func (h *history) datePlacements(s *forest.Snapshot) *forest.Snapshot {
	for namespace, since := range h.asked {
		s = forest.WithRequestDated(s, namespace, since, h.made)
		h.recordUnmet(s.Hierarchy(namespace))
	}
	h.made, h.asked = nil, nil
	return s
}

// recordUnmet records a request for a parent that the view does not have yet. request may be nil.
func (h *history) recordUnmet(request *forest.Hierarchy) {
	if request != nil && request.Parent != nil && *request.Parent != "" && request.ParentUID == "" {
		h.unmet[*request.Parent] = append(h.unmet[*request.Parent], request.Namespace)
	}
}

// dropUnmet drops a request that has changed or gone. request may be nil.
func (h *history) dropUnmet(request *forest.Hierarchy) {
	if request == nil || request.Parent == nil {
		return
	}
	parent := *request.Parent
	h.unmet[parent] = slices.DeleteFunc(h.unmet[parent], func(namespace string) bool { return namespace == request.Namespace })
	if len(h.unmet[parent]) == 0 {
		delete(h.unmet, parent)
	}
}

// meetRequests returns s, which has just got the namespace called parent, with that namespace's UID in the requests
// that have waited for it. So these requests don't mean a later namespace of that name.
func (h *history) meetRequests(s *forest.Snapshot, parent string) *forest.Snapshot {
	for _, namespace := range h.unmet[parent] {
		if request := s.Hierarchy(namespace); request != nil && request.Asks(&parent) && request.ParentUID == "" {
			met := *request
			met.ParentUID = uidOf(s, &parent)
			s = s.WithHierarchy(&met)
		}
	}
	delete(h.unmet, parent)
	return s
}

// uidOf returns the UID of the namespace that parent names; "" where parent is nil or there is no such namespace.
func uidOf(s *forest.Snapshot, parent *string) string {
	if parent == nil {
		return ""
	}
	if n := s.Namespace(*parent); n != nil {
		return n.UID
	}
	return ""
}
