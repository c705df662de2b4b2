package distribution

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindState is how far the watch of a kind's copies is.
type kindState string

const (
	kindSyncing   kindState = "syncing"
	kindActive    kindState = "active"
	kindPending   kindState = "pending"   // the API server doesn't serve it
	kindForbidden kindState = "forbidden" // the operator may not list or watch it
	kindDegraded  kindState = "degraded"  // its copies could not be listed for Timing.Degraded, for another reason
)

// kind is a kind whose copies are watched. Only kinds change one, or read what may change.
type kind struct {
	schema.GroupVersionKind // never changes
	resource                schema.GroupVersionResource
	state                   kindState
}

// kinds are the kinds that are configured, and how far the watches of their copies are.
type kinds struct {
	mu  sync.Mutex // guards all, and what may change in each kind; nothing is called while it is held
	all map[schema.GroupKind]*kind
}

// reset takes the kinds of a configuration, of whose copies nothing is known yet.
func (k *kinds) reset(configured []schema.GroupVersionKind) []*kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = map[schema.GroupKind]*kind{}
	list := make([]*kind, 0, len(configured))
	for _, gvk := range configured {
		one := &kind{GroupVersionKind: gvk, state: kindSyncing}
		k.all[gvk.GroupKind()] = one
		list = append(list, one)
	}
	return list
}

// find is what is known of a kind now; the zero value, which is syncing, for one that is not watched yet.
func (k *kinds) find(gk schema.GroupKind) kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.all[gk]; one != nil {
		return *one
	}
	return kind{state: kindSyncing}
}

// setResource notes where objects of a kind are written.
func (k *kinds) setResource(one *kind, resource schema.GroupVersionResource) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one.resource = resource
}

// setState notes how far the watch of a kind is, and says whether that is new.
func (k *kinds) setState(one *kind, state kindState) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed = one.state != state
	one.state = state
	return changed
}

// degrade notes that a kind is Degraded if it is syncing still, and says whether it was.
func (k *kinds) degrade(one *kind) (was bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one.state != kindSyncing {
		return false
	}
	one.state = kindDegraded
	return true
}

// findSyncing is a kind whose copies are not all known yet; ok is false if there is none.
func (k *kinds) findSyncing() (gk schema.GroupKind, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for gk, one := range k.all {
		if one.state == kindSyncing {
			return gk, true
		}
	}
	return gk, false
}
