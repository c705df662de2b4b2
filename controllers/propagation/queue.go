package propagation

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// what a key asks to look at.
type what int8

const (
	aNamespace what = iota // every slot in a namespace
	aSource                // a source: read it, or make sure that it is gone
	aSlot                  // one slot
	aTenant                // the limits of a tree
)

// key is one piece of work. Equal keys are done once.
type key struct {
	what what
	slot propagate.Slot
}

func namespaceKey(namespace string) key { return key{aNamespace, propagate.Slot{Namespace: namespace}} }
func tenantKey(root string) key         { return key{aTenant, propagate.Slot{Namespace: root}} }
func sourceKey(slot propagate.Slot) key { return key{aSource, slot} }
func slotKey(slot propagate.Slot) key   { return key{aSlot, slot} }
func slotKeys(slots []propagate.Slot) []key {
	keys := make([]key, len(slots))
	for i, slot := range slots {
		keys[i] = slotKey(slot)
	}
	return keys
}

// lane is what shares a turn: all slots of one source.
type lane struct {
	kind            schema.GroupKind
	namespace, name string
}

// queue holds the keys that are to be looked at.
type queue = copying.Queue[key, lane]

// largeBody is the size of a source, in bytes, from which on its copies are written one after the other for a while: the bodies of twenty of a MiB
// exceed bodiesLimit, and in turns of one copy each would be read and rendered anew for each copy.
const largeBody = 64 << 10

// newQueue returns a queue whose keys have their turns by what the tables say.
func newQueue(t *tables) *queue { return copying.NewQueue(t.turnOf) }

// turnOf says when a key is worked on. Its tenant is the tree in which something may be written or, for a source, was written.
// Within a tenant comes first, in turns by source, whatever costs no write of a copy, and what may take rights away: no flood of other
// copies keeps a right alive. Then come deletions, then the rest.
func (t *tables) turnOf(k key) copying.Turn[lane] {
	t.mu.Lock()
	defer t.mu.Unlock()
	world := t.in.world
	turn := copying.Turn[lane]{Tenant: world.Forest.RootOf(k.slot.Namespace)}
	if k.what != aSlot {
		return turn
	}
	action := world.Plan(k.slot)
	turn.Class, turn.Lane = 2, lane{action.Source.Kind, action.Source.Namespace, action.Source.Name}
	if s := world.Source(action.Source); s != nil {
		turn.Length = 1 + s.Size/largeBody
		if s.Size >= largeBody && (action.Verb == propagate.Create || action.Verb == propagate.Update) {
			turn.Weight = s.Size
		}
	}
	switch {
	case propagate.GivesRights(k.slot) && action.Verb != propagate.Create:
		turn.Class, turn.Weight = 0, 0
	case action.Verb == propagate.Delete:
		turn.Class = 1
	}
	return turn
}
