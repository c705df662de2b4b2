package view

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/warren-tenancy/warren/internal/forest"
)

// history is what the watches have told that no snapshot says. It has no lock: the view's guards it.
type history struct {
	version string // highest resourceVersion of a Namespace that the watch has brought
	// made and asked are, until the view is synced, when each Namespace, and the HierarchyConfiguration of each, was made; nil
	// afterwards.
	made, asked map[string]time.Time
}

func newHistory() history {
	return history{made: map[string]time.Time{}, asked: map[string]time.Time{}}
}

// isStarting says whether the view isn't synced yet.
func (h *history) isStarting() bool { return h.made != nil }

// noteNamespace notes a Namespace that the watch has brought.
func (h *history) noteNamespace(n *metav1.PartialObjectMetadata) {
	if h.version == "" {
		h.version = n.ResourceVersion
	}
	h.noteVersion(n.ResourceVersion)
	if h.isStarting() {
		h.made[n.Name] = n.CreationTimestamp.Time
	}
}

// noteVersion notes the resourceVersion of a Namespace that the watch has brought, or of its deletion.
func (h *history) noteVersion(version string) {
	if Newer(version, h.version) {
		h.version = version
	}
}

// datePlacements returns a snapshot that says of each request for a parent that was there at the start which namespace it means. It is
// called once, when everything is known.
func (h *history) datePlacements(s *forest.Snapshot) *forest.Snapshot {
	for namespace, since := range h.asked {
		s = s.WithRequestDated(namespace, since, h.made)
	}
	h.made, h.asked = nil, nil
	return s
}

// uidOf is the UID of the namespace that parent names; "" where there is none.
func uidOf(s *forest.Snapshot, parent *string) string {
	if parent == nil {
		return ""
	}
	if n := s.Namespace(*parent); n != nil {
		return n.UID
	}
	return ""
}

// Newer says whether resourceVersion a is strictly newer than b. What can't be compared is taken as not newer.
func Newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
