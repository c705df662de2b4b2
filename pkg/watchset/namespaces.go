package watchset

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// NamespaceSet is a set of namespaces that leases follow while it changes. When a namespace leaves the set, its stream
// is closed at once. When a namespace's UID changes, its informer is started again: the stream on the deleted namespace
// would deliver the objects of the new one, even if the identity has no right there. The zero value is an empty set.
type NamespaceSet struct {
	mu     sync.Mutex
	uids   map[string]types.UID
	leases map[*Lease]struct{}
}

// NewNamespaceSet makes a set of namespaces whose UIDs are not known.
func NewNamespaceSet(names ...string) *NamespaceSet {
	n := &NamespaceSet{uids: map[string]types.UID{}}
	for _, name := range names {
		n.uids[name] = ""
	}
	return n
}

// Replace makes the set hold exactly these namespaces. An empty UID means that the UID isn't known.
func (n *NamespaceSet) Replace(namespaces map[string]types.UID) {
	n.changeAndRearrange(func() { n.uids = maps.Clone(namespaces) })
}

// Add adds a namespace, or changes its UID. An empty UID means that the UID isn't known.
func (n *NamespaceSet) Add(name string, uid types.UID) {
	n.changeAndRearrange(func() {
		if n.uids == nil {
			n.uids = map[string]types.UID{}
		}
		n.uids[name] = uid
	})
}

// Remove removes a namespace.
func (n *NamespaceSet) Remove(name string) {
	n.changeAndRearrange(func() { delete(n.uids, name) })
}

// changeAndRearrange changes the set by f, and then has its leases follow the change. A Set's lock is never taken while
// n's is held.
func (n *NamespaceSet) changeAndRearrange(f func()) {
	n.mu.Lock()
	f()
	leases := maps.Clone(n.leases)
	n.mu.Unlock()
	for l := range leases {
		l.set.lock.changeUnderLock(func() {
			if !l.released && !l.set.stopped {
				l.arrangeNeededParts(nil)
			}
		})
	}
}

// copyNamespaceUIDs returns the namespaces with their UIDs.
func (n *NamespaceSet) copyNamespaceUIDs() map[string]types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.uids)
}

func (n *NamespaceSet) addFollower(l *Lease) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leases == nil {
		n.leases = map[*Lease]struct{}{}
	}
	n.leases[l] = struct{}{}
}

func (n *NamespaceSet) removeFollower(l *Lease) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.leases, l)
}

func (n *NamespaceSet) uidOfNamespace(name string) types.UID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.uids[name]
}
