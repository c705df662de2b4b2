package watchset

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// coverage holds the places where a lease has parts, and the namespaces where it has none because MaxNamespaces is
// reached. The Set's lock guards all fields but scope, which never changes.
type coverage struct {
	scope   Scope
	parts   map[place]*part // all parts that the lease holds
	waiting []string        // namespaces that exceed MaxNamespaces
	down    bool            // Auto: the cluster-wide part is Forbidden, and parts of namespaces take its place
}

// chooseNeededPlaces returns the places that the lease needs, in alphabetical order: at most limit of the
// NamespaceSet's namespaces. The names beyond that limit wait from now on.
func (c *coverage) chooseNeededPlaces(limit int) []place {
	switch c.scope.kind {
	case namespacesScope:
		return c.chooseNamespaces(limit)
	case autoScope:
		if c.down {
			return append([]place{{}}, c.chooseNamespaces(limit)...)
		}
		c.waiting = nil
		return []place{{}}
	}
	return []place{c.placeOfFixedScope()}
}

// chooseNamespaces returns places for at most limit of the NamespaceSet's namespaces; the others wait. Namespaces that
// have a part already are chosen first, so that a new name never displaces them.
func (c *coverage) chooseNamespaces(limit int) []place {
	uids := c.scope.set.copyNamespaceUIDs()
	followed := map[string]bool{}
	for at := range c.parts {
		if _, stays := uids[at.namespace]; stays && at.kind == namespaceScope && !followed[at.namespace] {
			followed[at.namespace] = true
			limit--
		}
	}
	c.waiting = nil
	var want []place
	for _, name := range slices.Sorted(maps.Keys(uids)) {
		if !followed[name] {
			if limit <= 0 {
				c.waiting = append(c.waiting, name)
				continue
			}
			limit--
		}
		want = append(want, place{kind: namespaceScope, namespace: name, uid: uids[name]})
	}
	return want
}

// placeOfFixedScope returns the only place of a scope that follows no NamespaceSet.
func (c *coverage) placeOfFixedScope() place {
	return place{kind: c.scope.kind, namespace: c.scope.namespace, name: c.scope.name}
}

// hasNoRoomFor reports whether MaxNamespaces leaves no room for a part in a namespace.
func (c *coverage) hasNoRoomFor(namespace string) bool { return slices.Contains(c.waiting, namespace) }

// isClusterWidePart reports whether p is the cluster-wide part of an Auto lease.
func (c *coverage) isClusterWidePart(p *part) bool {
	return c.scope.kind == autoScope && p.selection.key.kind == clusterScope
}

// partsToReadFrom returns the parts that the lease reads from, and ErrLimit for each namespace that has no part because
// MaxNamespaces is reached.
func (c *coverage) partsToReadFrom() (parts []*part, missing map[string]error) {
	missing = map[string]error{}
	for at, p := range c.parts {
		if c.scope.kind == autoScope && (at.kind == clusterScope) == c.down {
			continue
		}
		parts = append(parts, p)
	}
	for _, name := range c.waiting {
		missing[name] = ErrLimit
	}
	return parts, missing
}

// partsStandingIn yields the parts that an Auto lease has in single namespaces, and reads from while its cluster-wide
// part is Forbidden.
func (c *coverage) partsStandingIn() iter.Seq[*part] {
	return func(yield func(*part) bool) {
		if c.scope.kind != autoScope || !c.down {
			return
		}
		for at, p := range c.parts {
			if at.kind == namespaceScope && !yield(p) {
				return
			}
		}
	}
}

// partShowing returns the part that shows a namespace; nil if the lease has none for it.
func (c *coverage) partShowing(namespace string) *part {
	switch c.scope.kind {
	case clusterScope, objectScope:
		return c.parts[c.placeOfFixedScope()]
	case autoScope:
		if !c.down {
			return c.parts[place{}]
		}
		if p := c.partInNamespace(namespace); p != nil || c.hasNoRoomFor(namespace) {
			return p
		}
		return c.parts[place{}] // outside the NamespaceSet, the cluster-wide part's state explains why nothing is seen
	}
	return c.partInNamespace(namespace)
}

func (c *coverage) partInNamespace(namespace string) *part {
	var uid types.UID
	if c.scope.set != nil {
		uid = c.scope.set.uidOfNamespace(namespace)
	}
	return c.parts[place{kind: namespaceScope, namespace: namespace, uid: uid}]
}

// readablePart is partShowing for a read: it returns an error where the lease has no part for the namespace.
func (c *coverage) readablePart(namespace string) (*part, error) {
	if c.scope.namespace != "" && namespace != c.scope.namespace {
		return nil, fmt.Errorf("%w: the lease is on namespace %q, not on %q", ErrInvalid, c.scope.namespace, namespace)
	}
	if p := c.partShowing(namespace); p != nil {
		return p, nil
	}
	if c.hasNoRoomFor(namespace) {
		return nil, ErrLimit
	}
	return nil, fmt.Errorf("%w: namespace %q is not in the NamespaceSet", ErrNotSynced, namespace)
}

// combinedStatus returns the state of all parts together: the worst, and Synced only if all are.
func (c *coverage) combinedStatus() Status {
	parts, missing := c.partsToReadFrom()
	if len(parts) == 0 {
		return pendingStatus(len(missing) > 0)
	}
	var worst Status
	objects := 0
	for i, p := range parts {
		status := p.currentStatus()
		objects += status.Objects
		if i == 0 || isWorseStatus(status, worst) {
			worst = status
		}
	}
	if len(missing) > 0 && worst.State == Synced {
		worst = pendingStatus(true)
	}
	worst.Objects = objects
	return worst
}

// statusInNamespace returns the state of the part that shows a namespace.
func (c *coverage) statusInNamespace(namespace string) Status {
	if p := c.partShowing(namespace); p != nil {
		return p.currentStatus()
	}
	return pendingStatus(c.hasNoRoomFor(namespace))
}

// isWorseStatus reports whether a's state is worse than b's, or the same and older.
func isWorseStatus(a, b Status) bool {
	if a.State != b.State {
		return severity[a.State] > severity[b.State]
	}
	return a.Since.Before(b.Since)
}

// pendingStatus returns the state where a lease has no part. limited is true if it has none because MaxNamespaces
// is reached.
func pendingStatus(limited bool) Status {
	status := Status{State: Pending}
	if limited {
		status.Err = ErrLimit
	}
	return status
}
