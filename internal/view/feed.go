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

// feed turns the events of the manager's cache into changes of the view. It has no state of its own.
type feed struct {
	view *View
}

// SetupWithManager connects the view to the manager's cache. The view is marked synced when everything that exists at the start is
// in it.
func (v *View) SetupWithManager(ctx context.Context, mgr manager.Manager) error {
	f := &feed{view: v}
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	var registrations []cache.ResourceEventHandlerRegistration
	for object, handler := range map[client.Object]cache.ResourceEventHandler{
		namespaces:                         eventHandler(f.takeNamespace, f.dropNamespace),
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
	s.view.markSynced()
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

func (f *feed) takeNamespace(n *metav1.PartialObjectMetadata) {
	f.view.change(n.Name, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
		seen.noteNamespace(n)
		return withNamespace(old, forest.NamespaceOf(n))
	})
}

// withNamespace returns the snapshot with n in it; the old one where it holds a newer Namespace of that name, which an answer to the operator
// may have brought before the watch.
func withNamespace(old *forest.Snapshot, n *forest.Namespace) *forest.Snapshot {
	if known := old.Namespace(n.Name); known != nil && forest.IsNewer(known.ResourceVersion, n.ResourceVersion) {
		return old
	}
	return old.WithNamespace(n)
}

func (f *feed) dropNamespace(n *metav1.PartialObjectMetadata) {
	f.view.change(n.Name, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
		seen.noteVersion(n.ResourceVersion)
		if known := old.Namespace(n.Name); known == nil || known.UID != string(n.UID) {
			return old
		}
		return old.WithoutNamespace(n.Name)
	})
}

func (f *feed) takeSub(sub *v1alpha1.SubNamespace) {
	now := forest.SubOf(sub)
	f.view.change(sub.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		if reflect.DeepEqual(old.Sub(sub.Namespace, sub.Name), now) {
			return old // only its status was written
		}
		return old.WithSub(now)
	})
}

func (f *feed) dropSub(sub *v1alpha1.SubNamespace) {
	f.view.change(sub.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		return old.WithoutSub(sub.Namespace, sub.Name)
	})
}

func (f *feed) takeTenant(l *v1alpha1.LNamespace) {
	now := forest.TenantOf(l)
	f.view.change(l.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		if reflect.DeepEqual(old.Tenant(l.Name), now) {
			return old // only its status was written
		}
		return old.WithTenant(now)
	})
}

func (f *feed) dropTenant(l *v1alpha1.LNamespace) {
	f.view.change(l.Name, func(old *forest.Snapshot, _ *history) *forest.Snapshot { return old.WithoutTenant(l.Name) })
}

func (f *feed) takeHierarchy(hc *v1alpha1.HierarchyConfiguration) {
	if hc.Name != v1alpha1.HierarchyConfigurationName {
		return // an object of an earlier version of the CRD, which allowed other names
	}
	f.view.change(hc.Namespace, func(old *forest.Snapshot, seen *history) *forest.Snapshot {
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

func (f *feed) dropHierarchy(hc *v1alpha1.HierarchyConfiguration) {
	f.view.change(hc.Namespace, func(old *forest.Snapshot, _ *history) *forest.Snapshot {
		if known := old.Hierarchy(hc.Namespace); known == nil || known.UID != string(hc.UID) {
			return old
		}
		return old.WithoutHierarchy(hc.Namespace)
	})
}
