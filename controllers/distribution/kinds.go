package distribution

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindState is the state of the watch on a kind's copies.
type kindState string

const (
	kindSyncing   kindState = "syncing"
	kindActive    kindState = "active"
	kindPending   kindState = "pending"   // the API server doesn't serve the kind
	kindForbidden kindState = "forbidden" // the operator may not list or watch it
	kindDegraded  kindState = "degraded"  // its copies could not be listed for Timing.Degraded, for another reason
)

// kind is a kind whose copies are watched. Only methods of kinds change one, or read the fields that may change.
type kind struct {
	schema.GroupVersionKind // never changes
	resource                schema.GroupVersionResource
	state                   kindState
}

// kinds are the configured kinds, with the state of the watch on each kind's copies.
type kinds struct {
	mu  sync.Mutex // guards all, and the changing fields of each kind; nothing is called while it is held
	all map[schema.GroupKind]*kind
}

func newKinds(configured []schema.GroupVersionKind) *kinds {
	k := &kinds{all: map[schema.GroupKind]*kind{}}
	for _, gvk := range configured {
		k.all[gvk.GroupKind()] = &kind{GroupVersionKind: gvk, state: kindSyncing}
	}
	return k
}

// list returns all kinds.
func (k *kinds) list() []*kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.all))
}

// find returns a copy of a kind's entry; one in state kindSyncing for a kind that is not watched yet.
func (k *kinds) find(gk schema.GroupKind) kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.all[gk]; one != nil {
		return *one
	}
	return kind{state: kindSyncing}
}

// setResource records the resource by which objects of a kind are written.
func (k *kinds) setResource(one *kind, resource schema.GroupVersionResource) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one.resource = resource
}

// setState sets the state of a kind, and says whether that changed it.
func (k *kinds) setState(one *kind, state kindState) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed = one.state != state
	one.state = state
	return changed
}

// degrade sets kindDegraded if the kind is still syncing, and says whether it did.
func (k *kinds) degrade(one *kind) (was bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one.state != kindSyncing {
		return false
	}
	one.state = kindDegraded
	return true
}

// findSyncing returns a kind whose copies are not listed yet; ok is false if there is none.
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
