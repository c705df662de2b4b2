package propagation

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// followPause is how long changes of the forest are gathered before the watches follow them together.
const followPause = 50 * time.Millisecond

// followed holds the namespaces in which narrow kinds are watched one namespace at a time: the namespaces of the forest, halted ones
// included, and namespaces that have left the forest and still hold copies, or may do so.
type followed struct {
	set         *watchset.NamespaceSet
	snapshot    func() *forest.Snapshot
	holdsCopies func(namespace string) bool
	sees        func(namespace string) bool // all copies of narrow kinds in a namespace are known
	changed     chan struct{}               // has room for one signal: the forest has changed, or what is known of a namespace that has left it
	needed      atomic.Bool                 // some configured kind is narrow

	refreshing sync.Mutex // held while set is changed
	mu         sync.Mutex // guards all below; nothing else is called while it is held
	uids       map[string]types.UID
	// left holds the namespaces outside of the forest, with their UIDs, that bore the marks of a tree and in which nobody has looked for
	// copies since. The operator was down when such a namespace left the forest, and takes the marks off as soon as the operator is up.
	left map[string]types.UID
}

func newFollowed(snapshot func() *forest.Snapshot, holdsCopies func(string) bool) *followed {
	return &followed{
		set: watchset.NewNamespaceSet(), snapshot: snapshot, holdsCopies: holdsCopies, changed: make(chan struct{}, 1), left: map[string]types.UID{},
	}
}

// noteLeft keeps which namespaces have left the forest. The first change after a start names all namespaces, before the operator takes the
// marks off one.
func (f *followed) noteLeft(c view.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range c.Namespaces {
		n := c.New.Namespace(name)
		if n == nil {
			delete(f.left, name)
		} else if n.FormerRoot() != "" && !isInForest(c.New, name) {
			f.left[name] = types.UID(n.UID)
		}
	}
}

// noteSeen is called when a watch has synced: the copies in namespaces that have left the forest may be known now, so the set is refreshed
// soon.
func (f *followed) noteSeen() {
	f.mu.Lock()
	waits := len(f.left) > 0
	f.mu.Unlock()
	if waits {
		f.noteChange()
	}
}

// hasLeft says whether namespace has left the forest and may hold copies that nobody has seen. Once the operator knows all copies there,
// hasLeft forgets the namespace.
func (f *followed) hasLeft(namespace string, uid types.UID) bool {
	f.mu.Lock()
	left := f.left[namespace] == uid && uid != ""
	f.mu.Unlock()
	if left && f.sees(namespace) {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.left, namespace)
		return false
	}
	return left
}

// mayHold says whether namespace has left the forest, and nobody has looked for copies there since.
func (f *followed) mayHold(namespace string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, left := f.left[namespace]
	return left
}

func isInForest(s *forest.Snapshot, namespace string) bool {
	place := s.Place(namespace)
	return place.Kind != forest.None || place.Halted()
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
		uid := types.UID(s.Namespace(name).UID)
		if isInForest(s, name) || f.hasLeft(name, uid) || f.holdsCopies(name) {
			wanted[name] = uid
		}
	}
	return wanted
}

// isWanted returns a function that says whether a namespace is followed, or about to be followed, at the time of this call.
func (f *followed) isWanted() func(namespace string) bool {
	wanted := f.wanted()
	return func(namespace string) bool { _, is := wanted[namespace]; return is }
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
