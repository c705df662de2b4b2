// Package view holds the newest snapshot of the forest, for all controllers and webhooks. It takes in the watches of
// Namespaces, SubNamespaces, LNamespaces and HierarchyConfigurations (Feed) and the API server's answers to the
// operator's own requests (Observe), and calls every subscriber with what changed.
package view

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Change is what subscribers get when the forest has changed.
type Change struct {
	// Old and New are the forest before and after.
	Old, New *forest.Snapshot
	// Namespaces are the names whose place, keys, inheritance or copies may differ now. They need not exist.
	Namespaces []string
	// Version is the highest resourceVersion of a Namespace, or of the end of one, that the watch has brought.
	Version string
}

// View is the shared in-memory view of the forest. Snapshot never blocks; changes are made one after the other. A Feed
// (below) takes them from the manager's cache.
type View struct {
	snapshot atomic.Pointer[forest.Snapshot]
	synced   chan struct{}

	// mu serialises changes: the snapshot is replaced, synced is closed, and every subscriber is called while it is
	// held. It guards the fields below, and is taken in this file alone. A subscriber must not block, and must not
	// change the view.
	mu          sync.Mutex
	subscribers []func(Change)
	seen        history
	store       store // set before the first event; nil in tests without a watch
}

// New returns an empty view.
func New(rules forest.Rules) *View {
	v := &View{synced: make(chan struct{}), seen: newHistory()}
	v.snapshot.Store(forest.New(rules))
	return v
}

// Snapshot returns the forest as it is known now.
func (v *View) Snapshot() *forest.Snapshot { return v.snapshot.Load() }

// SeenVersion returns the highest resourceVersion of a Namespace that the watch has brought. A snapshot that is taken
// after this call shows all changes of Namespaces up to that version.
func (v *View) SeenVersion() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen.version
}

// Synced reports whether everything that existed at the start is in the snapshot. Before that, no decision may be based
// on the view.
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

// Subscribe calls fn on every change from now on, one change at a time; fn must not block. The first call comes when
// the view is synced, at once if it is already, and its change names every namespace.
func (v *View) Subscribe(fn func(Change)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.subscribers = append(v.subscribers, fn)
	if v.Synced() {
		fn(changeOfAll(v.Snapshot(), v.Snapshot()))
	}
}

// Observe takes in a Namespace as the API server answered it to a write or a live read of the operator, so that the
// next decision knows the Namespace before the watch brings it.
func (v *View) Observe(n metav1.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	answer := forest.NamespaceOf(n)
	if forest.IsNewer(v.seen.version, answer.ResourceVersion) || v.isGone(answer) {
		return // the watch is ahead of this answer, and may have brought the deletion of the Namespace already
	}
	old := v.Snapshot()
	now := withNamespace(old, answer)
	if known := old.Namespace(answer.Name); now != old && (known == nil || known.UID != answer.UID) {
		v.seen.answered[answer.Name] = true
	}
	v.replaceSnapshot(old, now, answer.Name)
}

// Touch calls the subscribers for a namespace although nothing in the forest has changed.
func (v *View) Touch(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.Snapshot(); v.Synced() {
		v.notifySubscribers(Change{Old: s, New: s, Namespaces: []string{name}})
	}
}

// changeSnapshot lets next record in the history what a watch has brought, and replaces the snapshot by the one that
// next returns, both under the lock, so that SeenVersion never runs ahead of the snapshot. name is that of the
// namespace concerned. Where next returns old, nothing of interest has changed.
func (v *View) changeSnapshot(name string, next func(old *forest.Snapshot, seen *history) *forest.Snapshot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	old := v.Snapshot()
	v.replaceSnapshot(old, next(old, &v.seen), name)
}

// replaceSnapshot stores a snapshot that differs from old in what concerns name, and calls the subscribers. It does
// nothing if now is old.
func (v *View) replaceSnapshot(old, now *forest.Snapshot, name string) {
	if now == old {
		return
	}
	v.snapshot.Store(now)
	if v.Synced() {
		v.notifySubscribers(Change{Old: old, New: now, Namespaces: forest.AffectedNamespaces(now, old, name), Version: v.seen.version})
	}
}

// notifySubscribers calls every subscriber with c. The engines subscribe themselves (Subscribe): controllers/copies,
// controllers/distribution and controllers/labelling. The reconcilers subscribe through Source: the Reconciler and the
// Reporter of controllers/hierarchy, and the reconcilers of lnamespace, subnamespace, access and ownrights.
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

// Feed turns the events of the manager's cache into changes of the View. It has no state of its own.
type Feed struct{ View *View }

// SetupWithManager connects the view to the manager's cache. The view is marked synced when everything that exists at
// the start is in it.
func (v *View) SetupWithManager(ctx context.Context, mgr manager.Manager) error {
	f := &Feed{v}
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	var registrations []cache.ResourceEventHandlerRegistration
	for object, handler := range map[client.Object]cache.ResourceEventHandler{
		namespaces:                         eventHandler(f.TakeNamespace, f.DropNamespace),
		&v1alpha1.SubNamespace{}:           eventHandler(f.takeSub, f.dropSub),
		&v1alpha1.LNamespace{}:             eventHandler(f.TakeTenant, f.dropTenant),
		&v1alpha1.HierarchyConfiguration{}: eventHandler(f.takeHierarchy, f.dropHierarchy),
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, object, ctrlcache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		if object == namespaces {
			shared, ok := informer.(cache.SharedInformer)
			if !ok {
				return fmt.Errorf("watching Namespaces: an informer of type %T has no store", informer)
			}
			v.store = shared.GetStore()
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		registrations = append(registrations, registration)
	}
	return mgr.Add(&syncer{view: v, registrations: registrations})
}

// syncer marks the view synced. It runs on standby replicas, too, so that a new leader starts with a complete view.
type syncer struct {
	view          *View
	registrations []cache.ResourceEventHandlerRegistration
}

// Start implements manager.Runnable.
func (s *syncer) Start(ctx context.Context) error {
	for _, registration := range s.registrations {
		if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return nil // the manager is stopping
		}
	}
	s.view.MarkSynced()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *syncer) NeedLeaderElection() bool { return false }

// eventHandler turns a pair of typed functions into an informer's event handler.
func eventHandler[T metav1.Object](seen, gone func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen(obj.(T)) },
		UpdateFunc: func(_, obj any) { seen(obj.(T)) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if object, ok := obj.(T); ok {
				gone(object)
			}
		},
	}
}

// TakeNamespace takes in a Namespace that the watch has shown.
func (f *Feed) TakeNamespace(n *metav1.PartialObjectMetadata) {
	f.View.changeSnapshot(n.Name, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
		seen.recordNamespace(n)
		now := withNamespace(old, forest.NamespaceOf(n))
		if now.Namespace(n.Name).UID == string(n.UID) {
			delete(seen.answered, n.Name)
		}
		return seen.meetRequests(now, n.Name)
	})
	f.View.dropGone()
}

// withNamespace returns the snapshot with n in it; the old one where it holds a newer Namespace of that name, which an
// answer to the operator may have brought before the watch.
func withNamespace(old *forest.Snapshot, n *forest.Namespace) *forest.Snapshot {
	if known := old.Namespace(n.Name); known != nil && forest.IsNewer(known.ResourceVersion, n.ResourceVersion) {
		return old
	}
	return old.WithNamespace(n)
}

// DropNamespace takes in that the watch has shown the deletion of a Namespace.
func (f *Feed) DropNamespace(n *metav1.PartialObjectMetadata) {
	f.View.changeSnapshot(n.Name, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
		seen.recordVersion(n.ResourceVersion)
		// The name may have been given again already, in an answer to the operator.
		if known := old.Namespace(n.Name); known == nil || known.UID != string(n.UID) {
			return old
		}
		delete(seen.answered, n.Name)
		return old.WithoutNamespace(n.Name)
	})
	f.View.dropGone()
}

func (f *Feed) takeSub(sub *v1alpha1.SubNamespace) {
	now := forest.SubOf(sub)
	f.View.changeSnapshot(sub.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		if reflect.DeepEqual(old.Sub(sub.Namespace, sub.Name), now) {
			return old // only its status was written
		}
		return old.WithSub(now)
	})
}

func (f *Feed) dropSub(sub *v1alpha1.SubNamespace) {
	f.View.changeSnapshot(sub.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		return old.WithoutSub(sub.Namespace, sub.Name)
	})
}

// TakeTenant takes in an LNamespace that the watch has shown.
func (f *Feed) TakeTenant(l *v1alpha1.LNamespace) {
	now := forest.TenantOf(l)
	f.View.changeSnapshot(l.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		if reflect.DeepEqual(old.Tenant(l.Name), now) {
			return old // only its status was written
		}
		return old.WithTenant(now)
	})
}

func (f *Feed) dropTenant(l *v1alpha1.LNamespace) {
	f.View.changeSnapshot(l.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot { return old.WithoutTenant(l.Name) })
}

func (f *Feed) takeHierarchy(hc *v1alpha1.HierarchyConfiguration) {
	if hc.Name != v1alpha1.HierarchyConfigurationName {
		return // an object of an earlier version of the CRD, which allowed other names
	}
	f.View.changeSnapshot(hc.Namespace, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
		known, h := old.Hierarchy(hc.Namespace), forest.HierarchyOf(hc.Namespace, string(hc.UID), hc.Spec)
		if known.Is(h) {
			return old // its status was written
		}
		switch {
		case seen.isStarting():
			seen.asked[hc.Namespace] = hc.CreationTimestamp.Time
			h.ParentUID = forest.RequestedParent(hc)
		// The same request still means the same parent.
		case known != nil && known.UID == h.UID && known.Asks(h.Parent):
			h.ParentUID = known.ParentUID
		default:
			h.ParentUID = uidOf(old, h.Parent)
			seen.dropUnmet(known)
			seen.recordUnmet(h)
		}
		return old.WithHierarchy(h)
	})
}

func (f *Feed) dropHierarchy(hc *v1alpha1.HierarchyConfiguration) {
	f.View.changeSnapshot(hc.Namespace, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
		known := old.Hierarchy(hc.Namespace)
		if known == nil || known.UID != string(hc.UID) {
			return old
		}
		seen.dropUnmet(known)
		return old.WithoutHierarchy(hc.Namespace)
	})
}
