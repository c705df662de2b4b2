package view

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/internal/forest"
)

// store is what the watch of Namespaces has brought, which its events may not have told yet: it is the store of the informer. client-go
// replaces it in one step when it lists, so that it is what existed at its version. Events alone don't tell the version of a list, and no
// event tells of a Namespace that came and went while no watch was open.
type store interface {
	LastStoreSyncResourceVersion() string
	GetByKey(key string) (item any, exists bool, err error)
}

// isGone reports whether the watch is past what an answer has shown of a namespace, and shows it no longer (rule R4 of internal/mirror).
func (v *View) isGone(n *forest.Namespace) bool {
	if v.store == nil {
		return false // only in tests: the events are all there is
	}
	// First the version: what the store has afterwards is never older.
	past := v.store.LastStoreSyncResourceVersion()
	if past != n.ResourceVersion && !forest.IsNewer(past, n.ResourceVersion) {
		return false
	}
	item, exists, err := v.store.GetByKey(n.Name)
	if err != nil || !exists {
		return err == nil
	}
	is, ok := item.(metav1.Object)
	return ok && string(is.GetUID()) != n.UID
}

// dropGone drops the Namespaces that only answers have shown, and that the watch is past: no event will tell of their end.
func (v *View) dropGone() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name := range v.seen.answered {
		old := v.Snapshot()
		if n := old.Namespace(name); n != nil && v.isGone(n) {
			delete(v.seen.answered, name)
			v.replaceSnapshot(old, old.WithoutNamespace(name), name)
		}
	}
}
