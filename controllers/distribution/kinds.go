package distribution

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// kind is a kind whose copies are watched. Only methods of kinds change one, or read the fields that may change.
type kind struct {
	schema.GroupVersionKind // never changes
	resource                schema.GroupVersionResource
	state                   copies.KindState
}

// kinds are the configured kinds, with the state of the watch on each kind's copies.
type kinds struct {
	mu  sync.Mutex // guards all, and the changing fields of each kind; nothing is called while it is held
	all map[schema.GroupKind]*kind
}

func newKinds(configured []schema.GroupVersionKind) *kinds {
	k := &kinds{all: map[schema.GroupKind]*kind{}}
	for _, gvk := range configured {
		k.all[gvk.GroupKind()] = &kind{GroupVersionKind: gvk, state: copies.KindSyncing}
	}
	return k
}

// list returns all kinds.
func (k *kinds) list() []*kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.all))
}

// find returns a copy of a kind's entry; one in state KindSyncing for a kind that is not watched yet.
func (k *kinds) find(gk schema.GroupKind) kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.all[gk]; one != nil {
		return *one
	}
	return kind{state: copies.KindSyncing}
}

// setResource records the resource by which objects of a kind are written.
func (k *kinds) setResource(one *kind, resource schema.GroupVersionResource) {
	k.mu.Lock()
	defer k.mu.Unlock()
	one.resource = resource
}

// setState takes in the status of the watch on a kind's copies. It returns the state of the kind, and whether that has changed.
func (k *kinds) setState(one *kind, now watchset.Status) (state copies.KindState, changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := one.state
	one.state = was.After(now)
	return one.state, one.state != was
}

// findSyncing returns a kind whose copies are not listed yet; ok is false if there is none.
func (k *kinds) findSyncing() (gk schema.GroupKind, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for gk, one := range k.all {
		if one.state == copies.KindSyncing {
			return gk, true
		}
	}
	return gk, false
}
