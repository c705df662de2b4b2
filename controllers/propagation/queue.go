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
)

// key is one piece of work. Equal keys are done once.
type key struct {
	what what
	slot propagate.Slot
}

func namespaceKey(namespace string) key { return key{aNamespace, propagate.Slot{Namespace: namespace}} }
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

// newQueue returns a queue in which plan says what a slot needs, and so how urgent its key is.
func newQueue(plan func(propagate.Slot) propagate.Action) *queue {
	return copying.NewQueue(func(k key) (int, lane) { return urgencyOf(k, plan) })
}

// urgencyOf says what a key is worth: whatever costs no write of a copy first, then deletions, then the rest, in turns by
// source.
func urgencyOf(k key, plan func(propagate.Slot) propagate.Action) (class int, of lane) {
	if k.what != aSlot {
		return 0, lane{}
	}
	action := plan(k.slot)
	of = lane{action.Source.Kind, action.Source.Namespace, action.Source.Name}
	if action.Verb == propagate.Delete {
		return 1, of
	}
	return 2, of
}
