package exporter

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
)

// cluster is the state that the watches have brought so far: the forest of namespaces, and how each tenant is billed. The forest is
// Warren's trees of namespaces. A tree whose root is the namespace of an LNamespace is that tenant's.
type cluster struct {
	forest *forest.Snapshot
	// namespaces holds the facts of Namespaces, payers those of LNamespaces, both by name.
	namespaces map[string]*namespaceFacts
	payers     map[string]*tenantFacts
}

func newCluster(rules forest.Rules) *cluster {
	return &cluster{forest: forest.New(rules), namespaces: map[string]*namespaceFacts{}, payers: map[string]*tenantFacts{}}
}

// holding reports whether a namespace belongs to a tenant.
type holding int

const (
	// held: the namespace belongs to a tenant.
	held holding = iota
	// unheld: the namespace belongs to no tenant, or is gone.
	unheld
	// unplaced: the namespace's ancestors can't be followed to a root, for example because a parent is missing. Its open period goes on.
	unplaced
)

// apply takes one change of the queue into the state. It returns the namespaces whose billing may have changed. made is when the changed
// object was made if the object is new; otherwise it is the zero time.
func (c *cluster) apply(change change) (names []string, made time.Time) {
	switch facts := change.facts.(type) {
	case *namespaceFacts:
		if change.gone {
			return c.removeNamespace(facts.Name, facts.UID), made
		}
		return c.applyNamespace(facts)
	case *tenantFacts:
		if change.gone {
			return c.removeTenant(facts.name, facts.uid), made
		}
		return c.applyTenant(facts)
	case census:
		return c.removeMissing(facts), made
	}
	return nil, made
}

// removeMissing removes the objects that a complete list doesn't have, and returns the namespaces whose billing may have changed.
func (c *cluster) removeMissing(all census) (names []string) {
	switch all.sample.(type) {
	case *namespaceFacts:
		for name, n := range c.namespaces {
			if !all.exist[types.UID(n.UID)] {
				names = append(names, c.removeNamespace(name, n.UID)...)
			}
		}
	case *tenantFacts:
		for name, p := range c.payers {
			if !all.exist[p.uid] {
				names = append(names, c.removeTenant(name, p.uid)...)
			}
		}
	}
	return names
}

// applyNamespace takes the facts of a namespace into the state. It returns the namespaces whose billing may have changed. made is when n
// was made if n is new; otherwise it is the zero time.
func (c *cluster) applyNamespace(n *namespaceFacts) (names []string, made time.Time) {
	before := c.namespaces[n.Name]
	c.namespaces[n.Name] = n
	c.forest = c.forest.WithNamespace(n.Namespace)
	if before == nil || before.UID != n.UID {
		made = n.made
	}
	return c.tree(n.Name), made
}

func (c *cluster) removeNamespace(name, uid string) []string {
	if known := c.namespaces[name]; known == nil || known.UID != uid {
		return nil // a new namespace of that name has been seen since
	}
	delete(c.namespaces, name)
	c.forest = c.forest.WithoutNamespace(name)
	return c.tree(name)
}

func (c *cluster) applyTenant(p *tenantFacts) (names []string, made time.Time) {
	before := c.payers[p.name]
	c.payers[p.name] = p
	if before == nil || before.uid != p.uid {
		made = p.made
	}
	return c.tree(p.name), made
}

func (c *cluster) removeTenant(name string, uid types.UID) []string {
	if known := c.payers[name]; known == nil || known.uid != uid {
		return nil
	}
	delete(c.payers, name)
	return c.tree(name)
}

// tree returns name and the names of all its descendants, also where a cycle or a missing parent keeps them from a root.
func (c *cluster) tree(name string) []string {
	found := []string{name}
	seen := map[string]bool{name: true}
	for i := 0; i < len(found); i++ {
		for _, child := range c.forest.Children(found[i]) {
			if !seen[child] {
				seen[child] = true
				found = append(found, child)
			}
		}
	}
	return found
}

// desired returns the values that the namespace's open period should have; they are empty unless the namespace is held.
func (c *cluster) desired(name string) (billing.Desired, holding) {
	n := c.forest.Namespace(name)
	if n == nil {
		return billing.Desired{}, unheld
	}
	place := c.forest.Place(name)
	if place.Halted() {
		return billing.Desired{}, unplaced
	}
	if !place.InTree() {
		return billing.Desired{}, unheld
	}
	tenant := place.Path[0]
	p, ok := c.payers[tenant]
	if !ok || c.namespaces[tenant].owner != p.uid {
		return billing.Desired{}, unheld
	}
	since := c.namespaces[name].made
	if p.since.After(since) {
		since = p.since
	}
	return billing.Desired{NamespaceUID: n.UID, Tenant: tenant, TenantUID: string(p.uid), Generation: p.generation,
		CostCenter: p.costCenter, Owner: p.owner, Labels: p.labelMap(), Since: since, Made: c.namespaces[name].made}, held
}

// all returns the desired values of all held namespaces, and the set of unplaced namespaces.
func (c *cluster) all() (desired map[string]billing.Desired, unknown map[string]bool) {
	desired, unknown = map[string]billing.Desired{}, map[string]bool{}
	for name := range c.forest.All() {
		switch d, h := c.desired(name); h {
		case held:
			desired[name] = d
		case unplaced:
			unknown[name] = true
		}
	}
	return desired, unknown
}
