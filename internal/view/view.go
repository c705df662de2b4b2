// Package view is the shared view of all namespaces in memory: the forest, kept up to date by events.
package view

import (
	"context"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Change tells subscribers that the forest has changed.
type Change struct {
	// Old and New are the forest before and after.
	Old, New *forest.Snapshot
	// Namespaces are the names whose place, keys, inheritance or copies may differ now. They need not exist.
	Namespaces []string
}

// View is the shared in-memory view. Reads never block; changes are serialised. Its feed (feed.go) brings the changes that the
// manager's cache sees.
type View struct {
	snapshot atomic.Pointer[forest.Snapshot]
	synced   chan struct{}

	// mu serialises changes: snapshot is replaced, synced closed, and every subscriber called while it is held. It guards what
	// follows, and is taken in this file alone. A subscriber must not block, and must not change the view.
	mu          sync.Mutex
	subscribers []func(Change)
	seen        history
}

// New returns an empty view.
func New(rules forest.Rules) *View {
	x := &View{synced: make(chan struct{}), seen: newHistory()}
	x.snapshot.Store(forest.New(rules))
	return x
}

// Snapshot is the forest as it is known now.
func (x *View) Snapshot() *forest.Snapshot { return x.snapshot.Load() }

// SeenVersion is the highest resourceVersion of a Namespace that the watch has brought. A snapshot that is taken afterwards shows all that
// had happened to Namespaces by then.
func (x *View) SeenVersion() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen.version
}

// Synced says whether everything that existed at the start is in the snapshot. No verdict may rest on it before.
func (x *View) Synced() bool {
	select {
	case <-x.synced:
		return true
	default:
		return false
	}
}

// WaitForSync blocks until Synced or until ctx is done.
func (x *View) WaitForSync(ctx context.Context) error {
	select {
	case <-x.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Subscribe calls fn on every change from now on, one at a time; it must not block. Nothing is told before the view is
// synced; then one change names every namespace.
func (x *View) Subscribe(fn func(Change)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.subscribers = append(x.subscribers, fn)
	if x.Synced() {
		fn(changeOfAll(x.Snapshot(), x.Snapshot()))
	}
}

// Reconfigure makes the view judge by other rules from now on.
func (x *View) Reconfigure(rules forest.Rules) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.Snapshot()
	x.snapshot.Store(old.WithRules(rules))
	if x.Synced() {
		x.notifySubscribers(changeOfAll(old, x.Snapshot()))
	}
}

// Observe takes the answer to a write of our own to a Namespace, so that the next decision knows of it before the watch
// brings it.
func (x *View) Observe(n metav1.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if Newer(x.seen.version, n.GetResourceVersion()) {
		return // the watch has been there already, and may have brought a deletion since
	}
	old := x.Snapshot()
	x.replaceSnapshot(old, withNamespace(old, forest.NamespaceOf(n)), n.GetName())
}

// Touch makes everybody look at a namespace again although nothing in the forest has changed.
func (x *View) Touch(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.Snapshot(); x.Synced() {
		x.notifySubscribers(Change{Old: s, New: s, Namespaces: []string{name}})
	}
}

// change notes in the history what a watch has brought, and replaces the snapshot by the next one, for a change of what bears that
// name; both happen at once for whoever reads SeenVersion. A snapshot that stays says that nothing of interest has changed.
func (x *View) change(name string, next func(old *forest.Snapshot, seen *history) *forest.Snapshot) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.Snapshot()
	x.replaceSnapshot(old, next(old, &x.seen), name)
}

// replaceSnapshot stores a snapshot that differs from old by what concerns name, and tells the subscribers. It does nothing where
// the snapshot is the old one.
func (x *View) replaceSnapshot(old, now *forest.Snapshot, name string) {
	if now == old {
		return
	}
	x.snapshot.Store(now)
	if x.Synced() {
		x.notifySubscribers(Change{Old: old, New: now, Namespaces: now.Affected(old, name)})
	}
}

func (x *View) notifySubscribers(c Change) {
	for _, fn := range x.subscribers {
		fn(c)
	}
}

// markSynced says that everything that existed at the start is in the snapshot, and tells the subscribers of all of it.
func (x *View) markSynced() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.snapshot.Store(x.seen.datePlacements(x.Snapshot()))
	close(x.synced)
	x.notifySubscribers(changeOfAll(x.Snapshot(), x.Snapshot()))
}

// changeOfAll is a change that names every namespace.
func changeOfAll(old, now *forest.Snapshot) Change {
	c := Change{Old: old, New: now}
	for name := range now.All() {
		c.Namespaces = append(c.Namespaces, name)
	}
	return c
}
