package watchset

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// EnqueueOwners returns a handler that enqueues the owners of this controller whose leases cover the object. It is made
// for Source; for events of another source it finds the resource by the object's kind.
func (s *Set) EnqueueOwners(controller string) handler.EventHandler {
	return &ownersHandler{s, controller}
}

type ownersHandler struct {
	set        *Set
	controller string
}

// Create implements handler.EventHandler, and so do Update, Delete and Generic.
func (h *ownersHandler) Create(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	h.enqueueOwners(ctx, e.Object, q)
}

func (h *ownersHandler) Update(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	h.enqueueOwners(ctx, e.ObjectNew, q)
}

func (h *ownersHandler) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	h.enqueueOwners(ctx, e.Object, q)
}

func (h *ownersHandler) Generic(ctx context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	h.enqueueOwners(ctx, e.Object, q)
}

func (h *ownersHandler) enqueueOwners(ctx context.Context, object client.Object,
	q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	p, _ := ctx.Value(partOf{}).(*part)
	var owners sets.Set[types.NamespacedName]
	h.set.lock.readUnderLock(func() { owners = h.ownersConcernedBy(p, object) })
	for name := range owners {
		q.Add(reconcile.Request{NamespacedName: name})
	}
}

// ownersConcernedBy returns the owners whose leases hold p, the part that saw the object. Where p is nil, or is held by
// no lease of the controller any more, other parts that cover the object take its place. The caller holds the Set's
// lock.
func (h *ownersHandler) ownersConcernedBy(p *part, object client.Object) sets.Set[types.NamespacedName] {
	found := sets.Set[types.NamespacedName]{}
	add := func(p *part) {
		for l := range p.demand.leases {
			if l.owner.Controller == h.controller {
				found.Insert(l.owner.NamespacedName)
			}
		}
	}
	if p != nil {
		add(p)
	}
	if len(found) > 0 {
		return found
	}
	for _, other := range h.set.parts.all {
		if scopeIncludes(other, object, p) {
			add(other)
		}
	}
	return found
}

// scopeIncludes reports whether p's scope and resource include the object. seen is the part that saw the object, nil if
// that part isn't known.
func scopeIncludes(p *part, object client.Object, seen *part) bool {
	switch {
	case p.selection.key.namespace != "" && p.selection.key.namespace != object.GetNamespace():
		return false
	case p.selection.key.kind == objectScope && p.selection.key.name != object.GetName():
		return false
	case p.selection.key.kind == clusterScope && !p.hasCompleteStore():
		return false // an Auto lease reads from parts of namespaces then
	case seen != nil:
		return p.selection.key.view == seen.selection.key.view
	}
	gvk := object.GetObjectKind().GroupVersionKind()
	if mapper := p.set.options.Mapper; mapper != nil {
		if m, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			return m.Resource == p.selection.targetResource()
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return strings.EqualFold(plural.String(), p.selection.targetResource().String())
}
