package view

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// SetupWithManager feeds the view from the manager's cache and marks it synced when all that exists is in it.
func (x *View) SetupWithManager(ctx context.Context, mgr manager.Manager) error {
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	var feeds []cache.ResourceEventHandlerRegistration
	for object, handler := range map[client.Object]cache.ResourceEventHandler{
		namespaces:                         eventHandler(x.takeNamespace, x.dropNamespace),
		&v1alpha1.SubNamespace{}:           eventHandler(x.takeSub, x.dropSub),
		&v1alpha1.LNamespace{}:             eventHandler(x.takeTenant, x.dropTenant),
		&v1alpha1.HierarchyConfiguration{}: eventHandler(x.takeHierarchy, x.dropHierarchy),
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, object, ctrlcache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		feed, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		feeds = append(feeds, feed)
	}
	return mgr.Add(&syncer{index: x, feeds: feeds})
}

// syncer marks the view synced. It runs on standbys too, so that a new leader starts with a warm view.
type syncer struct {
	index *View
	feeds []cache.ResourceEventHandlerRegistration
}

// Start implements manager.Runnable.
func (s *syncer) Start(ctx context.Context) error {
	for _, feed := range s.feeds {
		if !cache.WaitForCacheSync(ctx.Done(), feed.HasSynced) {
			return nil // the manager is stopping
		}
	}
	s.index.markSynced()
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

func (x *View) takeNamespace(n *metav1.PartialObjectMetadata) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if Newer(n.ResourceVersion, x.lastSeenVersion) || x.lastSeenVersion == "" {
		x.lastSeenVersion = n.ResourceVersion
	}
	if !x.Synced() {
		x.made[n.Name] = n.CreationTimestamp.Time
	}
	x.putNamespace(forest.NamespaceOf(n))
}

func (x *View) dropNamespace(n *metav1.PartialObjectMetadata) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if Newer(n.ResourceVersion, x.lastSeenVersion) {
		x.lastSeenVersion = n.ResourceVersion
	}
	x.removeNamespace(n.Name, string(n.UID))
}

// change replaces the snapshot by the next one, for a change of what bears that name; a snapshot that stays says that nothing of
// interest has changed.
func (x *View) change(name string, next func(old *forest.Snapshot) *forest.Snapshot) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.Snapshot()
	if now := next(old); now != old {
		x.replaceSnapshot(old, now, name)
	}
}

func (x *View) takeSub(sub *v1alpha1.SubNamespace) {
	now := forest.SubOf(sub)
	x.change(sub.Name, func(old *forest.Snapshot) *forest.Snapshot {
		if reflect.DeepEqual(old.Sub(sub.Namespace, sub.Name), now) {
			return old // only its status was written
		}
		return old.WithSub(now)
	})
}

func (x *View) dropSub(sub *v1alpha1.SubNamespace) {
	x.change(sub.Name, func(old *forest.Snapshot) *forest.Snapshot { return old.WithoutSub(sub.Namespace, sub.Name) })
}

func (x *View) takeTenant(l *v1alpha1.LNamespace) {
	now := forest.TenantOf(l)
	x.change(l.Name, func(old *forest.Snapshot) *forest.Snapshot {
		if reflect.DeepEqual(old.Tenant(l.Name), now) {
			return old // only its status was written
		}
		return old.WithTenant(now)
	})
}

func (x *View) dropTenant(l *v1alpha1.LNamespace) {
	x.change(l.Name, func(old *forest.Snapshot) *forest.Snapshot { return old.WithoutTenant(l.Name) })
}

func (x *View) takeHierarchy(hc *v1alpha1.HierarchyConfiguration) {
	if hc.Name != v1alpha1.HierarchyConfigurationName {
		return // made before the CRD knew better
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	old, h := x.Snapshot(), forest.HierarchyOf(hc.Namespace, string(hc.UID), hc.Spec)
	if old.Hierarchy(hc.Namespace).Is(h) {
		return // its status was written
	}
	known := old.Hierarchy(hc.Namespace)
	switch {
	case !x.Synced():
		x.asked[hc.Namespace] = hc.CreationTimestamp.Time
	case known != nil && known.UID == h.UID && known.Asks(h.Parent):
		h.ParentUID = known.ParentUID
	default:
		h.ParentUID = uidOf(old, h.Parent)
	}
	x.replaceSnapshot(old, old.WithHierarchy(h), hc.Namespace)
}

// datePlacements notes of each request for a parent that was there at the start which namespace it means. It is called once, when
// everything is known.
func (x *View) datePlacements() {
	for namespace, since := range x.asked {
		x.snapshot.Store(x.Snapshot().WithRequestDated(namespace, since, x.made))
	}
	x.made, x.asked = nil, nil
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

func (x *View) dropHierarchy(hc *v1alpha1.HierarchyConfiguration) {
	x.change(hc.Namespace, func(old *forest.Snapshot) *forest.Snapshot {
		if known := old.Hierarchy(hc.Namespace); known == nil || known.UID != string(hc.UID) {
			return old
		}
		return old.WithoutHierarchy(hc.Namespace)
	})
}
