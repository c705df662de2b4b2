package forest

import (
	"encoding/json"
	"maps"
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// HeldBy returns the holders of the namespace: the subjects of the tenant's lists who could administer the namespace
// through a RoleBinding of their own when a HierarchyConfiguration placed it. Each is the String of its Subject. HeldBy
// returns nil if the annotation held-by is absent or cannot be parsed.
func (n *Namespace) HeldBy() []string {
	var holders []string
	record := n.Annotations[v1alpha1.AnnotationHeldBy]
	if record == "" || json.Unmarshal([]byte(record), &holders) != nil {
		return nil
	}
	return holders
}

// RecordOfHolders returns the value of the annotation held-by for these holders. Without holders it returns nil, which
// removes the annotation.
func RecordOfHolders(holders []string) *string {
	if len(holders) == 0 {
		return nil
	}
	text, _ := json.Marshal(slices.Compact(slices.Sorted(slices.Values(holders)))) // strings always encode
	record := string(text)
	return &record
}

// tenantAround returns the tenant of the tree that n belongs to, also while n is halted. It returns nil if there is
// none.
func tenantAround(s *Snapshot, n *Namespace) *Tenant { return s.TenantOf(s.RootOf(n.Name)) }

// isAbandoned reports whether n was placed in the tree of a tenant whose lists no longer name any of n's holders (see
// HeldBy). The holders keep their own bindings in n, so they could read the copies of the tenant's sources there. That
// is why the operator releases n.
func isAbandoned(s *Snapshot, n *Namespace) bool {
	holders := n.HeldBy()
	if len(holders) == 0 || n.Parent() == "" || n.Bound() || n.Terminating || s.rules.isProtected(n) {
		return false
	}
	t := tenantAround(s, n)
	return t != nil && !t.Deleting && !slices.ContainsFunc(holders, func(who string) bool { return t.Listed[who] })
}

// releaseKeys returns n as it is after the operator has released it: in no tree, and without the keys that the operator
// wrote. Its label released keeps the admission policies in force for n. The record of the request that placed n stays,
// so that the same request doesn't place n again.
func releaseKeys(s *Snapshot, n *Namespace) *Namespace {
	free := n.clone()
	delete(free.Labels, v1alpha1.LabelParent)
	free = completeKeys(s, free)
	free.Labels[v1alpha1.LabelReleased] = v1alpha1.True
	return free
}

// IsReleased reports whether the operator has released the namespace called name, and nothing has placed that namespace
// since.
func IsReleased(s *Snapshot, name string) bool {
	n := s.Namespace(name)
	return n != nil && n.KindByLabels() == None && n.label(v1alpha1.LabelReleased) == v1alpha1.True
}

// ToRelease returns the tenant from whose tree the operator is about to release the namespace called name. abandoned is
// false if the operator is not about to release it.
func ToRelease(s *Snapshot, name string) (tenant *Tenant, abandoned bool) {
	n := s.Namespace(name)
	if n == nil || !isAbandoned(s, n) {
		return nil, false
	}
	return tenantAround(s, n), true
}

// AbandonedBy returns the namespaces that the operator is about to release from the tree of the tenant called name, in
// alphabetical order. It costs a pass over all namespaces.
func AbandonedBy(s *Snapshot, name string) []string {
	var abandoned []string
	for at := range s.All() {
		if tenant, yes := ToRelease(s, at); yes && tenant.Name == name {
			abandoned = append(abandoned, at)
		}
	}
	slices.Sort(abandoned)
	return abandoned
}

// otherwiseAbandoned returns nil if the tenant called name and its lists are the same in s as in old, or if the tenant
// is missing in s. Otherwise it returns the namespaces that the operator is about to release from the tenant's tree in
// s, or was about to release in old. It adds all namespaces below them.
func otherwiseAbandoned(s, old *Snapshot, name string) []string {
	before, now := old.Tenant(name), s.Tenant(name)
	if now == nil || now == before || before != nil && before.UID == now.UID && maps.Equal(before.Listed, now.Listed) {
		return nil
	}
	var affected []string
	for _, abandoned := range slices.Concat(AbandonedBy(s, name), AbandonedBy(old, name)) {
		affected = slices.AppendSeq(append(affected, abandoned), s.Below(abandoned))
	}
	return affected
}

// NeedsHolders reports whether a move of the namespace called name below parent must record the namespace's holders
// (see HeldBy), and for which tenant. The move must record them if the namespace is outside that tenant's tree before
// the move. It must also record them if the namespace has no such record yet, and a namespace above it has one.
func NeedsHolders(s *Snapshot, name, parent string) (tenant *Tenant, needed bool) {
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
