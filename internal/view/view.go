// Package view is the shared view of all namespaces in memory: the forest, kept up to date by events.
package view

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Change tells subscribers that the forest has changed.
type Change struct {
	// Old and New are the forest before and after.
	Old, New *forest.Snapshot
	// Namespaces are the names whose place, keys, inheritance or copies may differ now. They need not exist.
	Namespaces []string
}

// View is the shared in-memory view. Reads never block; changes are serialised.
type View struct {
	snapshot atomic.Pointer[forest.Snapshot]
	synced   chan struct{}

	mu              sync.Mutex
	subscribers     []func(Change)
	lastSeenVersion string // highest resourceVersion of a Namespace that the watch has brought
	// made and asked are, until the view is synced, when each Namespace, and the HierarchyConfiguration of each, was made.
	made, asked map[string]time.Time
}

// New returns an empty view.
func New(rules forest.Rules) *View {
	x := &View{synced: make(chan struct{}), made: map[string]time.Time{}, asked: map[string]time.Time{}}
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
	return x.lastSeenVersion
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
		fn(x.changeOfAll(x.Snapshot()))
	}
}

// Source is a controller's source: requests says what a change asks of that controller.
func (x *View) Source(requests func(Change) []reconcile.Request) source.Source {
	return &subscription{index: x, requests: requests}
}

type subscription struct {
	index    *View
	requests func(Change) []reconcile.Request
}

// Start implements source.Source.
func (s *subscription) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.index.Subscribe(func(c Change) {
		for _, request := range s.requests(c) {
			queue.Add(request)
		}
	})
	return nil
}

// WaitForSync implements source.SyncingSource: no controller reconciles against half a forest.
func (s *subscription) WaitForSync(ctx context.Context) error { return s.index.WaitForSync(ctx) }

// Reconfigure makes the view judge by other rules from now on.
func (x *View) Reconfigure(rules forest.Rules) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.Snapshot()
	x.snapshot.Store(old.WithRules(rules))
	if x.Synced() {
		x.notifySubscribers(x.changeOfAll(old))
	}
}

// Observe takes the answer to a write of our own to a Namespace, so that the next decision knows of it before the watch
// brings it.
func (x *View) Observe(n metav1.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if Newer(x.lastSeenVersion, n.GetResourceVersion()) {
		return // the watch has been there already, and may have brought a deletion since
	}
	x.putNamespace(forest.NamespaceOf(n))
}

// Touch makes everybody look at a namespace again although nothing in the forest has changed.
func (x *View) Touch(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.Snapshot(); x.Synced() {
		x.notifySubscribers(Change{Old: s, New: s, Namespaces: []string{name}})
	}
}

func (x *View) putNamespace(n *forest.Namespace) {
	old := x.Snapshot()
	if known := old.Namespace(n.Name); known != nil && known.UID == n.UID && Newer(known.ResourceVersion, n.ResourceVersion) {
		return
	}
	x.replaceSnapshot(old, old.WithNamespace(n), n.Name)
}

func (x *View) removeNamespace(name, uid string) {
	old := x.Snapshot()
	if known := old.Namespace(name); known != nil && known.UID == uid {
		x.replaceSnapshot(old, old.WithoutNamespace(name), name)
	}
}

// replaceSnapshot stores a snapshot that differs from old by what concerns name, and tells the subscribers.
func (x *View) replaceSnapshot(old, now *forest.Snapshot, name string) {
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

func (x *View) changeOfAll(old *forest.Snapshot) Change {
	c := Change{Old: old, New: x.Snapshot()}
	for name := range c.New.All() {
		c.Namespaces = append(c.Namespaces, name)
	}
	return c
}

func (x *View) markSynced() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.datePlacements()
	close(x.synced)
	x.notifySubscribers(x.changeOfAll(x.Snapshot()))
}

// Newer says whether resourceVersion a is strictly newer than b. What can't be compared is taken as not newer.
func Newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// Owns says whether the namespace called root is the one that the LNamespace with this UID made or adopted.
func (x *View) Owns(root string, uid types.UID) bool { return x.Snapshot().Owns(root, string(uid)) }

// UID is that of the namespace called name; "" if there is none.
func (x *View) UID(name string) types.UID {
	if n := x.Snapshot().Namespace(name); n != nil {
		return types.UID(n.UID)
	}
	return ""
}

// Living are root and the namespaces below it that don't terminate.
func (x *View) Living(root string) []string {
	s := x.Snapshot()
	return append([]string{root}, slices.DeleteFunc(s.Subtree(root), func(name string) bool { return s.Namespace(name).Terminating })...)
}

// BelongsTo says whether namespace counts as part of the tree of root where something is refused because of that, be it halted.
func (x *View) BelongsTo(namespace, root string) bool {
	return x.Snapshot().BelongsTo(namespace, root)
}

// InTree says whether namespace is root or lies below it.
func (x *View) InTree(namespace, root string) bool { return x.Snapshot().InTree(namespace, root) }
