package index

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// SetupWithManager feeds the index from the manager's cache and marks it synced when all that exists is in it.
func (x *Index) SetupWithManager(ctx context.Context, mgr manager.Manager) error {
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	var feeds []cache.ResourceEventHandlerRegistration
	for object, handler := range map[client.Object]cache.ResourceEventHandler{
		namespaces:                         handlers(x.namespaceSeen, x.namespaceGone),
		&v1alpha1.SubNamespace{}:           handlers(x.subSeen, x.subGone),
		&v1alpha1.LNamespace{}:             handlers(x.tenantSeen, x.tenantGone),
		&v1alpha1.HierarchyConfiguration{}: handlers(x.hierarchySeen, x.hierarchyGone),
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

// syncer marks the index synced. It runs on standbys too, so that a new leader starts with a warm view.
type syncer struct {
	index *Index
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

// handlers turns a pair of typed functions into an informer's event handler.
func handlers[T metav1.Object](seen, gone func(T)) cache.ResourceEventHandler {
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

func (x *Index) namespaceSeen(n *metav1.PartialObjectMetadata) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if Newer(n.ResourceVersion, x.seen) || x.seen == "" {
		x.seen = n.ResourceVersion
	}
	x.put(NamespaceOf(n))
}

func (x *Index) namespaceGone(n *metav1.PartialObjectMetadata) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if Newer(n.ResourceVersion, x.seen) {
		x.seen = n.ResourceVersion
	}
	x.remove(n.Name, string(n.UID))
}

// NamespaceOf takes the facts of a Namespace. What kubectl notes for itself is long and never looked at.
func NamespaceOf(n metav1.Object) *forest.Namespace {
	annotations := n.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		annotations = maps.Clone(annotations)
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
	return &forest.Namespace{
		Name: n.GetName(), UID: string(n.GetUID()), ResourceVersion: n.GetResourceVersion(),
		Labels: n.GetLabels(), Annotations: annotations, Terminating: n.GetDeletionTimestamp() != nil,
	}
}

func (x *Index) subSeen(sub *v1alpha1.SubNamespace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.Snapshot()
	x.replace(old, old.WithSub(&forest.Sub{
		Parent: sub.Namespace, Name: sub.Name, UID: string(sub.UID),
		Labels: plain(sub.Spec.Labels), Annotations: plain(sub.Spec.Annotations),
		Created: sub.CreationTimestamp.Time, Deleting: !sub.DeletionTimestamp.IsZero(),
	}), sub.Name)
}

func (x *Index) subGone(sub *v1alpha1.SubNamespace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.Snapshot()
	x.replace(old, old.WithoutSub(sub.Namespace, sub.Name), sub.Name)
}

func plain[V ~string](m map[string]V) map[string]string {
	result := make(map[string]string, len(m))
	for key, value := range m {
		result[key] = string(value)
	}
	return result
}

func (x *Index) tenantSeen(l *v1alpha1.LNamespace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.Snapshot()
	x.replace(old, old.WithTenant(TenantOf(l)), l.Name)
}

func (x *Index) tenantGone(l *v1alpha1.LNamespace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.Snapshot()
	x.replace(old, old.WithoutTenant(l.Name), l.Name)
}

// TenantOf takes the facts of an LNamespace.
func TenantOf(l *v1alpha1.LNamespace) *forest.Tenant {
	t := &forest.Tenant{
		Name: l.Name, UID: string(l.UID), Template: l.Spec.Template,
		AllowCascading: l.Spec.AllowCascadingDeletion, Deleting: !l.DeletionTimestamp.IsZero(),
	}
	if l.Spec.Limits != nil {
		t.MaxSubNamespaces, t.MaxDepth = l.Spec.Limits.SubNamespaces, l.Spec.Limits.Depth
	}
	return t
}

func (x *Index) hierarchySeen(hc *v1alpha1.HierarchyConfiguration) {
	if hc.Name != v1alpha1.HierarchyConfigurationName {
		return // made before the CRD knew better
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	old, h := x.Snapshot(), HierarchyOf(hc.Namespace, string(hc.UID), hc.Spec)
	if old.Hierarchy(hc.Namespace).Is(h) {
		return // its status was written
	}
	x.replace(old, old.WithHierarchy(h), hc.Namespace)
}

func (x *Index) hierarchyGone(hc *v1alpha1.HierarchyConfiguration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.Snapshot()
	if known := old.Hierarchy(hc.Namespace); known != nil && known.UID == string(hc.UID) {
		x.replace(old, old.WithoutHierarchy(hc.Namespace), hc.Namespace)
	}
}

// HierarchyOf takes the facts of the HierarchyConfiguration of namespace.
func HierarchyOf(namespace, uid string, spec v1alpha1.HierarchyConfigurationSpec) *forest.Hierarchy {
	return &forest.Hierarchy{
		Namespace: namespace, UID: uid, Parent: spec.Parent, AllowCascading: spec.AllowCascadingDeletion,
		Required:   texts(spec.RequiredChildren),
		Propagated: [2][]string{texts(spec.PropagatedLabels), texts(spec.PropagatedAnnotations)},
		Overridden: [2][]string{texts(spec.OverriddenLabels), texts(spec.OverriddenAnnotations)},
	}
}

func texts[T ~string](values []T) []string {
	var result []string
	for _, v := range values {
		result = append(result, string(v))
	}
	return result
}
