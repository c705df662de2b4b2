package migrate

import (
	"slices"
	"sync"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// capsuleClaims finds out who made the LNamespaces with the names of Tenants, and which of the Tenants' namespaces are
// in the trees of these LNamespaces.
type capsuleClaims struct {
	cluster Cluster
	// marked is findMarkedPairs of the cluster's kinds, which is computed only if a Tenant needs it.
	marked func() map[markedPair]bool
}

func newCapsuleClaims(c Cluster) *capsuleClaims {
	return &capsuleClaims{c, sync.OnceValue(func() map[markedPair]bool { return findMarkedPairs(c.Kinds) })}
}

// reasonNotToAdopt returns why an LNamespace of the Tenant's name must not get the Tenant's namespaces; "" if it may.
// Where users may make LNamespaces, another user may have made one with this name. Then its lists would grant rights in
// the namespaces.
func (c *capsuleClaims) reasonNotToAdopt(lns *v1alpha1.LNamespace, t tenantOfCapsule) string {
	if c.isMadeByCaller(lns) || c.ownsAllNamespaces(lns, t) {
		return ""
	}
	return "LNamespace " + lns.Name + " exists, and its creator is not known to be you: its lists would get rights in the Tenant's " +
		"namespaces. If the lists are right, kubectl annotate lnamespace " + lns.Name + " " +
		v1alpha1.AnnotationCreator + "=" + c.cluster.Caller + " --overwrite, and plan again"
}

// isMadeByCaller reports whether an LNamespace names as its creator the caller, or a user who ran this migration
// before. One without a creator was made by a cluster admin, such as the caller.
func (c *capsuleClaims) isMadeByCaller(lns *v1alpha1.LNamespace) bool {
	creator, record := lns.Annotations[v1alpha1.AnnotationCreator], c.cluster.Peer.Record
	return creator == "" || creator == c.cluster.Caller || record != nil && slices.Contains(record.Callers, creator)
}

// isMadeSinceRecord reports whether this migration made an LNamespace. The label created-by alone doesn't prove it,
// because any user may write it.
func (c *capsuleClaims) isMadeSinceRecord(lns *v1alpha1.LNamespace) bool {
	record := c.cluster.Peer.Record
	if record == nil || !c.isMadeByCaller(lns) || lns.Labels[v1alpha1.LabelCreatedBy] != madeHere {
		return false
	}
	_, older := record.Before[warrenObject("LNamespace", "", lns.Name).idWithGroup()]
	return !older
}

// ownsAllNamespaces reports whether the LNamespace owns its root and all namespaces of a Tenant are in its tree
// already.
func (c *capsuleClaims) ownsAllNamespaces(lns *v1alpha1.LNamespace, t tenantOfCapsule) bool {
	root := c.cluster.Namespaces[lns.Name]
	if root == nil || lns.UID == "" || root.Annotations[v1alpha1.AnnotationLNamespaceUID] != string(lns.UID) ||
		len(t.namespaces) == 0 {
		return false
	}
	return !slices.ContainsFunc(t.namespaces,
		func(name string) bool { return !isPlacedIn(lns.Name, c.cluster.Namespaces[name]) })
}

// hasMigrationTraces reports whether a migration has written something in the namespaces of a Tenant, or about them,
// that an undo removes.
func (c *capsuleClaims) hasMigrationTraces(t tenantOfCapsule) bool {
	root := t.GetName()
	return slices.ContainsFunc(t.namespaces, func(namespace string) bool {
		sub := c.cluster.Subs[root+"/"+namespace]
		return isPlacedIn(root, c.cluster.Namespaces[namespace]) || c.cluster.Peer.Record != nil &&
			(sub != nil && sub.Labels[v1alpha1.LabelCreatedBy] == madeHere || c.marked()[markedPair{namespace, root}])
	})
}

// markedPair is a namespace that has a copy or a source with marks of a migration, and the root of the Tenant by which
// it got them.
type markedPair struct{ namespace, root string }

func findMarkedPairs(kinds []Kind) map[markedPair]bool {
	marked := map[markedPair]bool{}
	for _, kind := range kinds {
		for _, object := range kind.Objects {
			if from := object.Labels[v1alpha1.LabelInheritedFrom]; from != "" {
				marked[markedPair{object.Namespace, from}] = true
			}
			if object.Labels[v1alpha1.LabelPropagate] == v1alpha1.ModeCreate {
				marked[markedPair{object.Namespace, object.Namespace}] = true
			}
		}
	}
	return marked
}

// stopBelowForeignRoot sets Stop, so that the migration can only be undone, if two things are true. A migration has
// already changed some of a Tenant's namespaces, and another user's LNamespace now has the Tenant's name. An undo takes
// the namespaces out of its tree, and doesn't change the LNamespace.
func (e *capsuleEstate) stopBelowForeignRoot(t tenantOfCapsule, why string) {
	if e.cluster.LNamespaces[t.GetName()] == nil || t.GetDeletionTimestamp() != nil {
		return
	}
	if e.claims.hasMigrationTraces(t) {
		e.Stop = "Tenant " + t.GetName() + ": " + why
		e.placeNamespaces(t)
		e.addTenantRights(t)
	}
}
