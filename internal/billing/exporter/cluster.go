package exporter

import (
	"maps"
	"slices"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
)

// cluster is the state that the watches have brought so far: the forest of namespaces, and how each tenant is billed.
// The forest is Warren's trees of namespaces. A tree whose root is the namespace of an LNamespace is that tenant's.
type cluster struct {
	forest *forest.Snapshot
	// namespaces holds the facts of Namespaces, payers those of LNamespaces, both by name.
	namespaces map[string]*namespaceFacts
	payers     map[string]*tenantFacts
}

func newCluster(rules forest.Rules) *cluster {
	return &cluster{forest: forest.New(rules), namespaces: map[string]*namespaceFacts{}, payers: map[string]*tenantFacts{}}
}

// listFacts returns the facts of all objects of the sample's kind.
func (c *cluster) listFacts(sample any) (all []any) {
	if _, ok := sample.(*namespaceFacts); ok {
		for _, n := range c.namespaces {
			all = append(all, n)
		}
		return all
	}
	for _, p := range c.payers {
		all = append(all, p)
	}
	return all
}

// applyChange takes a change of one object into the state. made is when the object was made if it is new; otherwise it
// is the zero time.
func (c *cluster) applyChange(facts any, gone bool) (made time.Time) {
	switch facts := facts.(type) {
	case *namespaceFacts:
		before := c.namespaces[facts.Name]
		switch known := before != nil && before.UID == facts.UID; {
		case gone && known: // otherwise a new namespace of that name has been seen since
			delete(c.namespaces, facts.Name)
			c.forest = c.forest.WithoutNamespace(facts.Name)
		case !gone:
			c.namespaces[facts.Name] = facts
			c.forest = c.forest.WithNamespace(facts.Namespace)
			if !known {
				made = facts.made
			}
		}
	case *tenantFacts:
		before := c.payers[facts.name]
		switch known := before != nil && before.uid == facts.uid; {
		case gone && known:
			delete(c.payers, facts.name)
		case !gone:
			c.payers[facts.name] = facts
			if !known {
				made = facts.made
			}
		}
	}
	return made
}

// findTree returns name and the names of all its descendants, also where a cycle or a missing parent keeps them from a
// root.
func (c *cluster) findTree(name string) []string {
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

// findDesired returns the values that the namespace's open period should have; nil if no tenant holds the namespace.
// placed is false if the namespace's ancestors can't be followed to a root, for example because a parent is missing.
// Its open period goes on.
func (c *cluster) findDesired(name string) (d *billing.Desired, placed bool) {
	n := c.forest.Namespace(name)
	if n == nil {
		return nil, true
	}
	place := c.forest.Place(name)
	switch {
	case place.Halted():
		return nil, false
	case !place.InTree():
		return nil, true
	}
	tenant := place.Path[0]
	p, ok := c.payers[tenant]
	if !ok || c.namespaces[tenant].owner != p.uid {
		return nil, true
	}
	facts := c.namespaces[name]
	since := facts.made
	if p.since.After(since) {
		since = p.since
	}
	return &billing.Desired{NamespaceUID: n.UID, Tenant: tenant, TenantUID: string(p.uid), Generation: p.generation,
		CostCenter: p.costCenter, Owner: p.owner, Labels: p.labelMap(), Since: since, Made: facts.made}, true
}

// sameDesired reports whether a namespace is billed alike with both values. Each may be nil.
func sameDesired(a, b *billing.Desired) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.NamespaceUID == b.NamespaceUID && a.TenantUID == b.TenantUID && a.Tenant == b.Tenant && a.CostCenter == b.CostCenter &&
		a.Owner == b.Owner && maps.Equal(a.Labels, b.Labels)
}

// listTenants returns all tenants.
func (c *cluster) listTenants() []*tenantFacts {
	return slices.AppendSeq(make([]*tenantFacts, 0, len(c.payers)), maps.Values(c.payers))
}

func nameOf(facts any) string {
	if n, ok := facts.(*namespaceFacts); ok {
		return n.Name
	}
	return facts.(*tenantFacts).name
}

func uidOf(facts any) string {
	if n, ok := facts.(*namespaceFacts); ok {
		return n.UID
	}
	return string(facts.(*tenantFacts).uid)
}
