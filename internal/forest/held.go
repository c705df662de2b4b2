package forest

import (
	"encoding/json"
	"maps"
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// HeldBy are those of a tenant's lists who could administer the namespace by a binding of its own when a HierarchyConfiguration
// placed it, each as its Subject names itself. A record that can't be read names nobody.
func (n *Namespace) HeldBy() []string {
	var holders []string
	if json.Unmarshal([]byte(n.Annotations[v1alpha1.AnnotationHeldBy]), &holders) != nil {
		return nil
	}
	return holders
}

// RecordOfHolders is the value of the annotation held-by for these holders; nil, which removes it, where there are none.
func RecordOfHolders(holders []string) *string {
	if len(holders) == 0 {
		return nil
	}
	text, _ := json.Marshal(slices.Compact(slices.Sorted(slices.Values(holders)))) // strings always encode
	record := string(text)
	return &record
}

// tenantAround is the tenant in whose tree n counts, be it halted; nil if there is none.
func (s *Snapshot) tenantAround(n *Namespace) *Tenant { return s.TenantOf(s.RootOf(n.Name)) }

// isAbandoned says whether n was placed in the tree of a tenant that lists nobody any more of those who held it then. They have
// kept their own bindings there, and so would read whatever else the tenant's sources bring.
func (s *Snapshot) isAbandoned(n *Namespace) bool {
	holders := n.HeldBy()
	if len(holders) == 0 || n.Parent() == "" || n.Bound() || n.Terminating || s.rules.isProtected(n) {
		return false
	}
	t := s.tenantAround(n)
	return t != nil && !t.Deleting && !slices.ContainsFunc(holders, func(who string) bool { return t.Listed[who] })
}

// released is n as the operator lets it go: in no tree, without what came from it, and guarded by its label as before. The record of
// the request that had placed it stays, so that the same request doesn't place it again.
func (s *Snapshot) released(n *Namespace) *Namespace {
	free := n.clone()
	delete(free.Labels, v1alpha1.LabelParent)
	free = s.completeKeys(free)
	free.Labels[v1alpha1.LabelReleased] = v1alpha1.True
	return free
}

// Released says whether the operator has let the namespace called name go.
func (s *Snapshot) Released(name string) bool {
	n := s.Namespace(name)
	return n != nil && n.kindByLabels() == None && n.label(v1alpha1.LabelReleased) == v1alpha1.True
}

// ToRelease says whether the namespace called name is about to be let go, and by which tenant.
func (s *Snapshot) ToRelease(name string) (tenant *Tenant, abandoned bool) {
	n := s.Namespace(name)
	if n == nil || !s.isAbandoned(n) {
		return nil, false
	}
	return s.tenantAround(n), true
}

// Abandoned are the namespaces that the tenant called name is about to let go, in alphabetical order. It looks at every namespace.
func (s *Snapshot) Abandoned(name string) []string {
	var abandoned []string
	for at := range s.All() {
		if tenant, yes := s.ToRelease(at); yes && tenant.Name == name {
			abandoned = append(abandoned, at)
		}
	}
	slices.Sort(abandoned)
	return abandoned
}

// newlyAbandoned are the namespaces that the tenant called name is about to let go because its lists have changed since old, or its
// namespace was found.
func (s *Snapshot) newlyAbandoned(old *Snapshot, name string) []string {
	before, now := old.Tenant(name), s.Tenant(name)
	if now == nil || now == before || before != nil && before.UID == now.UID && maps.Equal(before.Listed, now.Listed) {
		return nil
	}
	return s.Abandoned(name)
}

// NeedsHolders says whether the namespace called name, on its way below parent, comes under a tenant from outside of its tree, or out
// from below a namespace that did: then it is recorded who holds it.
func (s *Snapshot) NeedsHolders(name, parent string) (tenant *Tenant, needed bool) {
	n, root := s.Namespace(name), s.RootOf(parent)
	tenant = s.TenantOf(root)
	switch {
	case n == nil || tenant == nil:
		return nil, false
	case s.RootOf(name) != root:
		return tenant, true
	case len(n.HeldBy()) > 0:
		return nil, false
	}
	seen := map[string]bool{}
	for at := s.Namespace(n.Parent()); at != nil && !seen[at.Name]; at = s.Namespace(at.Parent()) {
		if len(at.HeldBy()) > 0 {
			return tenant, true
		}
		seen[at.Name] = true
	}
	return nil, false
}
