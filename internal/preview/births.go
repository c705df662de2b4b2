package preview

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// plannedUID prefixes the UID of an object that doesn't exist yet: two of them must differ, and none may be empty.
const plannedUID = "planned:"

// planRoots plans the namespaces of LNamespaces, the oldest first.
func (p *settlement) planRoots() {
	tenants := slices.SortedFunc(slices.Values(p.tenants), func(x, y *v1alpha1.LNamespace) int {
		if order := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(x.Name, y.Name)
	})
	for _, tenant := range tenants {
		p.planRoot(tenant)
	}
}

// planRoot plans the creation or adoption of the namespace of an LNamespace.
func (p *settlement) planRoot(tenant *v1alpha1.LNamespace) {
	t := forest.TenantOf(tenant)
	n := p.f.Namespace(t.Name)
	switch {
	case t.Deleting, p.f.Owns(t.Name, t.UID), tenant.NameLost(), n == nil && p.c.Reserved(t.Name, p.operatorNamespace):
	case n != nil && p.f.NotAdoptable(n, t) != "":
	case n == nil && len(p.f.Waiting(t.Name)) > 0:
		p.note("LNamespace %s: namespaces wait for a parent of its name, and whether it gets the name depends on the operator's webhooks", t.Name)
	case p.isOneTooMany(t):
		p.hold(t.Name, t.Name, "tenants.maxPerCreator leaves no room for LNamespace %s", t.Name)
	case n == nil:
		p.bear(p.f.NewRoot(t), "LNamespace "+t.Name+" asks for it")
	default:
		change := p.f.Adoption(t)
		p.write(Update, t.Name, "LNamespace "+t.Name+" adopts it: "+describeChange(change))
		p.replace(n.With(change))
	}
}

func (p *settlement) isOneTooMany(t *forest.Tenant) bool {
	most := p.c.Tenants.MaxPerCreator
	return most > 0 && t.Creator != "" && p.f.MadeBefore(t) >= most
}

// planChildren plans the namespaces of SubNamespaces, the oldest first.
func (p *settlement) planChildren() {
	for _, sub := range slices.SortedFunc(slices.Values(p.subs()), forest.Older) {
		p.planChild(sub)
	}
}

// planChild plans the creation of the namespace of a SubNamespace.
func (p *settlement) planChild(sub *forest.Sub) {
	if sub.Deleting || sub.NameLost || p.f.Namespace(sub.Name) != nil || p.f.ParentObstacle(sub.Parent).Exists() ||
		p.f.NameObstacle(sub.Parent, sub.Name).Exists() || p.f.NamingObstacle(sub.Parent, sub.Name).Exists() {
		return
	}
	root := p.f.Place(sub.Parent).Path[0]
	if p.f.DepthObstacle(sub.Parent).Exists() || p.f.NoRoom(root, 0, 1) != "" {
		p.hold(sub.Name, root, "the limits of tree %s leave no room for SubNamespace %s/%s", root, sub.Parent, sub.Name)
		return
	}
	p.bear(p.f.NewChild(sub), fmt.Sprintf("SubNamespace %s/%s asks for it", sub.Parent, sub.Name))
}

// bear plans the creation of a Namespace, and adds it to the planned forest.
func (p *settlement) bear(n *forest.Namespace, reason string) {
	n.UID = plannedUID + n.Name
	p.replace(n)
	p.write(Create, n.Name, reason)
}
