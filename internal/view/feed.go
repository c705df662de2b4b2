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

// Feed turns the events of the manager's cache into changes of the View. It has no state of its own.
type Feed struct{ View *View }

// SetupWithManager connects the view to the manager's cache. The view is marked synced when everything that exists at the start is
// in it.
func (v *View) SetupWithManager(ctx context.Context, mgr manager.Manager) error {
	f := &Feed{v}
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	var registrations []cache.ResourceEventHandlerRegistration
	for object, handler := range map[client.Object]cache.ResourceEventHandler{
		namespaces:                         eventHandler(f.TakeNamespace, f.DropNamespace),
		&v1alpha1.SubNamespace{}:           eventHandler(f.takeSub, f.dropSub),
		&v1alpha1.LNamespace{}:             eventHandler(f.takeTenant, f.dropTenant),
		&v1alpha1.HierarchyConfiguration{}: eventHandler(f.takeHierarchy, f.dropHierarchy),
	} {
		informer, err := mgr.GetCache().GetInformer(ctx, object, ctrlcache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
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
	f.View.change(n.Name, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
		seen.recordNamespace(n)
		return withNamespace(old, forest.NamespaceOf(n))
	})
}

// withNamespace returns the snapshot with n in it; the old one where it holds a newer Namespace of that name, which an answer to the
// operator may have brought before the watch.
func withNamespace(old *forest.Snapshot, n *forest.Namespace) *forest.Snapshot {
	if known := old.Namespace(n.Name); known != nil && forest.IsNewer(known.ResourceVersion, n.ResourceVersion) {
		return old
	}
	return old.WithNamespace(n)
}

// DropNamespace takes in that the watch has shown the deletion of a Namespace.
func (f *Feed) DropNamespace(n *metav1.PartialObjectMetadata) {
	f.View.change(n.Name, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
		seen.recordVersion(n.ResourceVersion)
		if known := old.Namespace(n.Name); known == nil || known.UID != string(n.UID) {
			return old
		}
		return old.WithoutNamespace(n.Name)
	})
}

func (f *Feed) takeSub(sub *v1alpha1.SubNamespace) {
	now := forest.SubOf(sub)
	f.View.change(sub.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		if reflect.DeepEqual(old.Sub(sub.Namespace, sub.Name), now) {
			return old // only its status was written
		}
		return old.WithSub(now)
	})
}

func (f *Feed) dropSub(sub *v1alpha1.SubNamespace) {
	f.View.change(sub.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		return old.WithoutSub(sub.Namespace, sub.Name)
	})
}

func (f *Feed) takeTenant(l *v1alpha1.LNamespace) {
	now := forest.TenantOf(l)
	f.View.change(l.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		if reflect.DeepEqual(old.Tenant(l.Name), now) {
			return old // only its status was written
		}
		return old.WithTenant(now)
	})
}

func (f *Feed) dropTenant(l *v1alpha1.LNamespace) {
	f.View.change(l.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot { return old.WithoutTenant(l.Name) })
}

func (f *Feed) takeHierarchy(hc *v1alpha1.HierarchyConfiguration) {
	if hc.Name != v1alpha1.HierarchyConfigurationName {
		return // an object of an earlier version of the CRD, which allowed other names
	}
	f.View.change(hc.Namespace, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
		known, h := old.Hierarchy(hc.Namespace), forest.HierarchyOf(hc.Namespace, string(hc.UID), hc.Spec)
		if known.Is(h) {
			return old // its status was written
		}
		switch {
		case seen.isStarting():
			seen.asked[hc.Namespace] = hc.CreationTimestamp.Time
		case known != nil && known.UID == h.UID && known.Asks(h.Parent):
			h.ParentUID = known.ParentUID
		default:
			h.ParentUID = uidOf(old, h.Parent)
		}
		return old.WithHierarchy(h)
	})
}

func (f *Feed) dropHierarchy(hc *v1alpha1.HierarchyConfiguration) {
	f.View.change(hc.Namespace, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		if known := old.Hierarchy(hc.Namespace); known == nil || known.UID != string(hc.UID) {
			return old
		}
		return old.WithoutHierarchy(hc.Namespace)
	})
}
