// Package view holds the newest snapshot of the forest. It takes in the watches of Namespaces, SubNamespaces, LNamespaces and
// HierarchyConfigurations (feed.go) and the API server's answers to the operator's own requests (Observe), and calls every
// subscriber with what changed.
package view

import (
	"context"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Change is what subscribers get when the forest has changed.
type Change struct {
	// Old and New are the forest before and after.
	Old, New *forest.Snapshot
	// Namespaces are the names whose place, keys, inheritance or copies may differ now. They need not exist.
	Namespaces []string
}

// View is the shared in-memory view of the forest. Snapshot never blocks; changes are made one after the other. A Feed (feed.go) takes them
// from the manager's cache.
type View struct {
	snapshot atomic.Pointer[forest.Snapshot]
	synced   chan struct{}

	// mu serialises changes: the snapshot is replaced, synced is closed, and every subscriber is called while it is held. It guards
	// the fields below, and is taken in this file alone. A subscriber must not block, and must not change the view.
	mu          sync.Mutex
	subscribers []func(Change)
	seen        history
}

// New returns an empty view.
func New(rules forest.Rules) *View {
	v := &View{synced: make(chan struct{}), seen: newHistory()}
	v.snapshot.Store(forest.New(rules))
	return v
}

// Snapshot returns the forest as it is known now.
func (v *View) Snapshot() *forest.Snapshot { return v.snapshot.Load() }

// SeenVersion returns the highest resourceVersion of a Namespace that the watch has brought. A snapshot that is taken after this
// call shows all changes of Namespaces up to that version.
func (v *View) SeenVersion() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen.version
}

// Synced reports whether everything that existed at the start is in the snapshot. Before that, no decision may be based on the view.
func (v *View) Synced() bool {
	select {
	case <-v.synced:
		return true
	default:
		return false
	}
}

// WaitForSync blocks until Synced or until ctx is done.
func (v *View) WaitForSync(ctx context.Context) error {
	select {
	case <-v.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Subscribe calls fn on every change from now on, one change at a time; fn must not block. The first call comes when the view is
// synced, at once if it is already, and its change names every namespace.
func (v *View) Subscribe(fn func(Change)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.subscribers = append(v.subscribers, fn)
	if v.Synced() {
		fn(changeOfAll(v.Snapshot(), v.Snapshot()))
	}
}

// Observe takes in a Namespace as the API server answered it to a write or a live read of the operator, so that the next decision
// knows the Namespace before the watch brings it.
func (v *View) Observe(n metav1.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if forest.IsNewer(v.seen.version, n.GetResourceVersion()) {
		return // the watch is ahead of this answer, and may have brought the deletion of the Namespace already
	}
	old := v.Snapshot()
	v.replaceSnapshot(old, withNamespace(old, forest.NamespaceOf(n)), n.GetName())
}

// Touch calls the subscribers for a namespace although nothing in the forest has changed.
func (v *View) Touch(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.Snapshot(); v.Synced() {
		v.notifySubscribers(Change{Old: s, New: s, Namespaces: []string{name}})
	}
}

// change lets next record in the history what a watch has brought, and replaces the snapshot by the one that next returns, both
// under the lock, so that SeenVersion never runs ahead of the snapshot. name is that of the namespace concerned. Where next returns
// old, nothing of interest has changed.
func (v *View) change(name string, next func(old *forest.Snapshot, seen *history) *forest.Snapshot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old := v.Snapshot()
	v.replaceSnapshot(old, next(old, &v.seen), name)
}

// replaceSnapshot stores a snapshot that differs from old in what concerns name, and calls the subscribers. It does nothing if now is old.
func (v *View) replaceSnapshot(old, now *forest.Snapshot, name string) {
	if now == old {
		return
	}
	v.snapshot.Store(now)
	if v.Synced() {
		v.notifySubscribers(Change{Old: old, New: now, Namespaces: forest.AffectedNamespaces(now, old, name)})
	}
}

// notifySubscribers calls every subscriber with c. The engines subscribe themselves (Subscribe): controllers/copies,
// controllers/distribution and controllers/labelling. The reconcilers subscribe through Source: the Reconciler and the Reporter of
// controllers/hierarchy, and the reconcilers of lnamespace, subnamespace, access and ownrights.
func (v *View) notifySubscribers(c Change) {
	for _, fn := range v.subscribers {
		fn(c)
	}
}

// MarkSynced marks the snapshot complete, and calls the subscribers with all namespaces.
func (v *View) MarkSynced() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.snapshot.Store(v.seen.datePlacements(v.Snapshot()))
	close(v.synced)
	v.notifySubscribers(changeOfAll(v.Snapshot(), v.Snapshot()))
}

// changeOfAll returns a change that names every namespace.
func changeOfAll(old, now *forest.Snapshot) Change {
	c := Change{Old: old, New: now}
	for name := range now.All() {
		c.Namespaces = append(c.Namespaces, name)
	}
	return c
}
