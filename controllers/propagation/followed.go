package propagation

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// followPause is how long changes of the forest are gathered before the watches follow them together.
const followPause = 50 * time.Millisecond

// followed are the namespaces in which kinds are watched that are watched namespace by namespace: those of the forest, sound or not,
// and those that have left it and still hold copies.
type followed struct {
	set         *watchset.NamespaceSet
	snapshot    func() *forest.Snapshot
	holdsCopies func(namespace string) bool
	changed     chan struct{} // holds one: the forest has changed
	needed      atomic.Bool   // some kind is watched so

	refreshing sync.Mutex // held by whoever changes the set
	mu         sync.Mutex // guards uids; nothing else is called while it is held
	uids       map[string]types.UID
}

func newFollowed(snapshot func() *forest.Snapshot, holdsCopies func(string) bool) *followed {
	return &followed{set: watchset.NewNamespaceSet(), snapshot: snapshot, holdsCopies: holdsCopies, changed: make(chan struct{}, 1)}
}

// noteChange has the watches follow the forest soon.
func (f *followed) noteChange() {
	select {
	case f.changed <- struct{}{}:
	default: // it is noted already
	}
}

// run follows the forest until ctx is done.
func (f *followed) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPause):
		}
		if f.needed.Load() {
			f.refresh()
		}
	}
}

// refresh brings the set in line with the forest.
func (f *followed) refresh() {
	f.refreshing.Lock()
	defer f.refreshing.Unlock()
	wanted := f.wanted()
	f.mu.Lock()
	same := maps.Equal(f.uids, wanted)
	f.uids = wanted
	f.mu.Unlock()
	if !same {
		f.set.Replace(wanted)
	}
}

func (f *followed) wanted() map[string]types.UID {
	s, wanted := f.snapshot(), map[string]types.UID{}
	for name := range s.All() {
		if place := s.Place(name); place.Kind != forest.None || place.Halted() || f.holdsCopies(name) {
			wanted[name] = types.UID(s.Namespace(name).UID)
		}
	}
	return wanted
}

// all calls yield with each namespace, until it returns false.
func (f *followed) all(yield func(namespace string) bool) {
	f.mu.Lock()
	uids := f.uids // is replaced, never changed
	f.mu.Unlock()
	for name := range uids {
		if !yield(name) {
			return
		}
	}
}
