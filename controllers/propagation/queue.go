package propagation

import (
	"k8s.io/utils/clock"

	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// what says which work a key asks for.
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

func namespaceKey(namespace string) key     { return key{aNamespace, propagate.Slot{Namespace: namespace}} }
func tenantKey(root string) key             { return key{aTenant, propagate.Slot{Namespace: root}} }
func sourceKey(slot propagate.Slot) key     { return key{aSource, slot} }
func slotKey(slot propagate.Slot) key       { return key{aSlot, slot} }
func slotKeys(slots []propagate.Slot) []key { return keysFor(slots, slotKey) }

func keysFor(slots []propagate.Slot, keyOf func(propagate.Slot) key) []key {
	keys := make([]key, len(slots))
	for i, slot := range slots {
		keys[i] = keyOf(slot)
	}
	return keys
}

// queue holds the keys that are to be looked at.
type queue = fairqueue.Queue[key]

// largeBody is the size of a source, in bytes, from which on one turn of the source's lane writes several copies, one after the other, and
// these writes have a weight (see fairqueue.Attributes). With turns of one copy each, twenty sources of 1 MiB, whose bodies exceed bodiesLimit
// together, would be read and rendered anew for each copy.
const largeBody = 64 << 10

// newQueue returns a queue that takes the attributes of each key from the tables.
func newQueue(f facts) *queue { return fairqueue.New(f.attributesOf, clock.RealClock{}) }

// attributesOf returns where a key waits; see fairqueue.Attributes. The tenant is the root of the tree around the key's namespace, and "" outside of every
// tree. Class 0 comes first in a tenant: keys of anything but a slot, which cost no write of a copy, and slots of RoleBindings where a write
// may take rights away, so that no flood of other copies keeps a right alive; these are urgent. Class 1 has the other deletions, class 2 the rest.
func attributesOf(world *propagate.World, k key) fairqueue.Attributes {
	of := fairqueue.Attributes{Tenant: world.Forest.RootOf(k.slot.Namespace)}
	if k.what != aSlot {
		// A look at a source costs a read; one at a namespace, or at the limits of a tree, asks nothing of the API server.
		of.Urgent = k.what != aSource || propagate.GivesRights(k.slot)
		return of
	}
	action := world.Plan(k.slot)
	of.Class, of.Lane = 2, action.Source.String()
	if s := world.Sources.At(action.Source); s != nil {
		of.Burst = 1 + s.Size/largeBody
		if s.Size >= largeBody && (action.Verb == propagate.Create || action.Verb == propagate.Update) {
			of.Weight = s.Size
		}
	}
	switch {
	case propagate.GivesRights(k.slot) && action.Verb != propagate.Create:
		of.Class, of.Weight, of.Urgent = 0, 0, true
	case action.Verb == propagate.Delete:
		of.Class = 1
	}
	return of
}
