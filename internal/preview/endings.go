package preview

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// removedKinds returns those of Warren's resources whose CRD is being deleted. The operator then lets their objects be deleted
// without their namespaces. It reads CRDs only if some object is being deleted.
func (p *settlement) removedKinds(ctx context.Context, api client.Reader) (map[string]bool, error) {
	removed, wanted := map[string]bool{}, map[string]bool{}
	for _, sub := range p.subs() {
		wanted["subnamespaces"] = wanted["subnamespaces"] || p.isEnding(sub)
	}
	for _, tenant := range p.tenants {
		wanted["lnamespaces"] = wanted["lnamespaces"] || !tenant.DeletionTimestamp.IsZero()
	}
	for _, resource := range []string{"subnamespaces", "lnamespaces"} {
		if !wanted[resource] {
			continue
		}
		served, err := apianswer.Served(ctx, api, resource)
		switch {
		case apierrors.IsForbidden(err):
			p.note("CustomResourceDefinition %s.%s: you may not read it, and if it is being deleted, the namespaces of its objects stay", resource, v1alpha1.Domain)
		case err != nil:
			return nil, fmt.Errorf("making sure that %s are not being removed as a kind: %w", resource, err)
		default:
			removed[resource] = !served
		}
	}
	return removed, nil
}

// isForeign says whether a SubNamespace is being deleted without the operator's finalizer: the operator has nothing left to do, and
// only finalizers of others keep it.
func (p *settlement) isForeign(sub *forest.Sub) bool {
	read := p.start.Sub(sub.Parent, sub.Name)
	return read != nil && read.UID == sub.UID && sub.Deleting && !p.finalized[sub.Parent+"/"+sub.Name]
}

// planEndings plans what follows from deletions that are under way: of SubNamespaces, the lowest in the tree first, then of LNamespaces.
func (p *settlement) planEndings(removed map[string]bool) {
	subs := slices.DeleteFunc(p.subs(), func(sub *forest.Sub) bool { return !p.isEnding(sub) || p.isForeign(sub) })
	slices.SortFunc(subs, func(a, b *forest.Sub) int {
		return cmp.Or(len(p.f.Place(b.Parent).Path)-len(p.f.Place(a.Parent).Path), forest.Older(a, b))
	})
	for _, sub := range subs {
		p.endSub(sub, removed["subnamespaces"])
	}
	for _, tenant := range p.tenants {
		if !tenant.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(tenant, v1alpha1.FinalizerLNamespace) {
			p.endTenant(forest.TenantOf(tenant), removed["lnamespaces"])
		}
	}
}

// endSub plans what the operator writes before it removes its finalizer from a SubNamespace.
func (p *settlement) endSub(sub *forest.Sub, removed bool) {
	reason, _ := p.f.KeepsNamespace(sub.Parent, sub.Name)
	if before, _ := p.start.KeepsNamespace(sub.Parent, sub.Name); reason == "" && before == v1alpha1.ReasonDeletionRefused {
		p.note("namespace %s: it is deleted with SubNamespace %s/%s if the operator looks at those below it first, and stays otherwise", sub.Name, sub.Parent, sub.Name)
	}
	if reason == "" && !removed {
		child := p.f.Namespace(sub.Name)
		if change := p.f.Bequest(child); !change.Empty() {
			p.write(Update, child.Name, fmt.Sprintf("SubNamespace %s/%s is being deleted, and what is below may go, too: %s", sub.Parent, sub.Name, describeChange(change)))
			child = child.With(change)
		}
		p.end(child, fmt.Sprintf("SubNamespace %s/%s is being deleted", sub.Parent, sub.Name))
	}
	if reason == v1alpha1.ReasonDeletionRefused && permitsCascading(p.f.Desired(sub.Name)) {
		p.note("namespace %s: it stays if the operator looks at SubNamespace %s/%s, which is being deleted, before it writes that what is below may go, too, and is deleted otherwise",
			sub.Name, sub.Parent, sub.Name)
	}
	p.f = p.f.WithoutSub(sub.Parent, sub.Name)
}

// endTenant plans what the operator writes before it removes its finalizer from an LNamespace. planTenant plans the removal of its rights.
func (p *settlement) endTenant(t *forest.Tenant, removed bool) {
	n := p.f.Namespace(t.Name)
	switch {
	case removed && p.f.Tenant(t.Name) == nil:
		return
	case removed:
		p.f = p.f.WithoutTenant(t.Name)
		return
	case !p.f.Owns(t.Name, t.UID):
		p.ending[t.Name] = true
		return
	case p.f.HeldByChildren(t.Name) != "":
		if p.permitCascading(n) {
			p.endTenant(t, removed)
			return
		}
		p.hold(t.Name, t.Name, "LNamespace %s is being deleted: %s", t.Name, p.f.HeldByChildren(t.Name))
		return
	}
	p.ending[t.Name] = true
	switch {
	case n.Terminating:
	case p.f.Protected(t.Name):
		p.hold(t.Name, t.Name, "LNamespace %s is being deleted, and its namespace is protected", t.Name)
	default:
		if len(p.f.BoundChildren(t.Name)) > 0 {
			p.note("LNamespace %s: which copies of its RoleBindings the operator deletes below it, before Kubernetes deletes them with their namespaces, can't be known", t.Name)
		}
		p.end(n, "LNamespace "+t.Name+" is being deleted")
	}
}

// permitsCascading says whether a change writes the permission to delete what is below a namespace together with it.
func permitsCascading(change forest.Change) bool {
	value := change.Annotations[v1alpha1.AnnotationCascading]
	return value != nil && *value == v1alpha1.True
}

// permitCascading plans the write by which a namespace gets the permission to delete what is below it, and says whether there is one.
func (p *settlement) permitCascading(n *forest.Namespace) bool {
	change := p.f.Desired(n.Name)
	if !permitsCascading(change) {
		return false
	}
	p.write(Update, n.Name, describeChange(change))
	p.replace(n.With(change))
	return true
}

// end plans the deletion of a namespace. Objects in the namespace are deleted with it; deletions of namespaces below follow from
// deleted SubNamespaces.
func (p *settlement) end(n *forest.Namespace, reason string) {
	p.write(Delete, n.Name, reason)
	n = n.With(forest.Change{})
	n.Terminating = true
	p.replace(n)
}

// noteForeignFinalizers adds a note for objects that are being deleted and that only finalizers of others keep.
func (p *settlement) noteForeignFinalizers() {
	for _, sub := range p.subs() {
		if p.isForeign(sub) {
			p.note("SubNamespace %s/%s: it is being deleted, and finalizers of others hold it; what comes when it is gone is not in this plan", sub.Parent, sub.Name)
		}
	}
	for _, tenant := range p.tenants {
		if !tenant.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(tenant, v1alpha1.FinalizerLNamespace) {
			p.note("LNamespace %s: it is being deleted, and finalizers of others hold it; what comes when it is gone is not in this plan", tenant.Name)
		}
	}
}

// noteConflicts adds a note for each HierarchyConfiguration whose parent could be granted at first, but not after other planned
// writes, because the order of these writes isn't known.
func (p *settlement) noteConflicts() {
	for name := range p.lawful {
		n, r := p.f.Namespace(name), p.f.Request(name)
		switch {
		case n == nil || n.Terminating || !r.Asked || len(r.Obstacles) == 0:
		case r.Obstacles[0].Reason == v1alpha1.ReasonWouldCycle:
			p.note("namespace %s: its HierarchyConfiguration and another one ask for places that exclude each other (%s); the operator grants the one that it sees first", name, r.Obstacles[0].Message)
		default:
			p.note("namespace %s: the place that its HierarchyConfiguration asks for can be given now, and not after other writes of this plan (%s); which comes first can't be known", name, r.Obstacles[0].Message)
		}
	}
}

// noteWaits adds a note for namespaces that will be created again after their deletion. When that happens depends on the finalizers
// of the objects in them.
func (p *settlement) noteWaits() {
	for name := range p.f.All() {
		n := p.f.Namespace(name)
		h := p.f.Hierarchy(name)
		for _, sub := range p.f.Subs(name) {
			if o := p.f.NameObstacle(name, sub.Name); !sub.Deleting && !n.Terminating && o.Reason == v1alpha1.ReasonNamespaceTerminating {
				p.note("namespace %s: it is made anew for SubNamespace %s/%s when the one that is being terminated is gone", sub.Name, name, sub.Name)
			}
		}
		if h == nil || n.Terminating {
			continue
		}
		for _, child := range h.Required {
			if old := p.f.Namespace(child); p.f.Sub(name, child) == nil && old != nil && old.Terminating {
				p.note("required child %s of namespace %s: its SubNamespace is made when the namespace that is being terminated is gone", child, name)
			}
		}
	}
	for _, tenant := range p.tenants {
		if n := p.f.Namespace(tenant.Name); tenant.DeletionTimestamp.IsZero() && n != nil && n.Terminating {
			p.note("LNamespace %s: a namespace of its name is being terminated, and what comes when that is gone is not in this plan", tenant.Name)
		}
	}
}
