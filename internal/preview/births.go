package preview

import (
	"fmt"
	"slices"
	"strings"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// plannedUID prefixes the UID of a Namespace that doesn't exist yet: two of them must differ, and none may be empty.
const plannedUID = "planned:"

// births plans the Namespaces that LNamespaces and SubNamespaces ask for. The forest grows with each.
type births struct {
	f                 *forest.Snapshot
	c                 *config.OperatorConfiguration
	operatorNamespace string
	writes            []Write
	notes             []string
}

// planBirths returns the writes, and the forest as it is after them.
func planBirths(f *forest.Snapshot, tenants []*v1alpha1.LNamespace, c *config.OperatorConfiguration, operatorNamespace string) *births {
	b := &births{f: f, c: c, operatorNamespace: operatorNamespace}
	tenants = slices.SortedFunc(slices.Values(tenants), func(x, y *v1alpha1.LNamespace) int {
		if order := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(x.Name, y.Name)
	})
	for _, tenant := range tenants {
		b.planRoot(tenant)
	}
	b.noteWishes()
	var subs []*forest.Sub
	for name := range b.f.All() {
		subs = append(subs, b.f.Subs(name)...)
	}
	slices.SortFunc(subs, forest.Older)
	for _, sub := range subs {
		b.planChild(sub)
	}
	return b
}

// noteWishes notes what HierarchyConfigurations ask for that is not followed to its end.
func (b *births) noteWishes() {
	for name := range b.f.All() {
		h := b.f.Hierarchy(name)
		if h == nil {
			continue
		}
		for _, child := range h.Required {
			if b.f.Sub(name, child) == nil {
				b.notes = append(b.notes, fmt.Sprintf("required child %s of namespace %s: it has no SubNamespace yet, and what comes of one is not in this plan", child, name))
			}
		}
		if r := b.f.Request(name); r.Asked && len(r.Obstacles) == 0 {
			b.notes = append(b.notes, fmt.Sprintf("namespace %s: what comes and goes with the move that its HierarchyConfiguration asks for is not in this plan", name))
		}
	}
	slices.Sort(b.notes)
}

// planRoot plans that the namespace of an LNamespace is made or adopted.
func (b *births) planRoot(tenant *v1alpha1.LNamespace) {
	t := forest.TenantOf(tenant)
	n := b.f.Namespace(t.Name)
	switch {
	case t.Deleting:
		b.notes = append(b.notes, fmt.Sprintf("LNamespace %s: it is being deleted, and what goes with it is not in this plan", t.Name))
	case b.f.Owns(t.Name, t.UID), tenant.NameLost(), n == nil && b.c.Reserved(t.Name, b.operatorNamespace):
	case n != nil && b.f.NotAdoptable(n, t) != "":
	case n == nil && len(b.f.Waiting(t.Name)) > 0:
		b.notes = append(b.notes, fmt.Sprintf("LNamespace %s: namespaces wait for a parent of its name, and whether it gets the name depends on the operator's webhooks", t.Name))
	case b.isOneTooMany(t):
		b.add(Held, t.Name, t.Name, fmt.Sprintf("tenants.maxPerCreator leaves no room for LNamespace %s", t.Name))
	case n == nil:
		b.bear(b.f.NewRoot(t), "LNamespace "+t.Name+" asks for it")
	default:
		change := b.f.Adoption(t)
		b.f = b.f.WithNamespace(n.With(change))
		b.add(Update, t.Name, t.Name, "LNamespace "+t.Name+" adopts it: "+describeChange(change))
	}
}

func (b *births) isOneTooMany(t *forest.Tenant) bool {
	most := b.c.Tenants.MaxPerCreator
	return most > 0 && t.Creator != "" && b.f.MadeBefore(t) >= most
}

// planChild plans that the namespace of a SubNamespace is made.
func (b *births) planChild(sub *forest.Sub) {
	switch {
	case sub.Deleting:
		b.notes = append(b.notes, fmt.Sprintf("SubNamespace %s/%s: it is being deleted, and what goes with it is not in this plan", sub.Parent, sub.Name))
		return
	case sub.NameLost, b.f.Namespace(sub.Name) != nil, b.f.ParentObstacle(sub.Parent).Exists(), b.f.NameObstacle(sub.Parent, sub.Name).Exists(),
		b.f.NamingObstacle(sub.Parent, sub.Name).Exists():
		return
	}
	root := b.f.Place(sub.Parent).Path[0]
	if b.f.DepthObstacle(sub.Parent).Exists() || b.f.NoRoom(root, 0, 1) != "" {
		b.add(Held, sub.Name, root, fmt.Sprintf("the limits of tree %s leave no room for SubNamespace %s/%s", root, sub.Parent, sub.Name))
		return
	}
	b.bear(b.f.NewChild(sub.Parent, sub.Name), fmt.Sprintf("SubNamespace %s/%s asks for it", sub.Parent, sub.Name))
}

// bear takes a Namespace into the forest that is to be made.
func (b *births) bear(n *forest.Namespace, reason string) {
	n.UID = plannedUID + n.Name
	b.f = b.f.WithNamespace(n)
	b.add(Create, n.Name, b.f.RootOf(n.Name), reason)
}

func (b *births) add(verb Verb, name, tenant, reason string) {
	b.writes = append(b.writes, Write{Verb: verb, Kind: "Namespace", Name: name, Tenant: tenant, Reason: reason})
}
