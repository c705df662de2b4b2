package copies

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/fairqueue"
)

// largeBody is a size of a source, in bytes. From this size on, one turn of the source's lane writes several copies, one after the other,
// and these writes have a weight (see fairqueue.Attributes). With turns of one copy each, twenty sources of 1 MiB, whose bodies do not fit
// into memory together, would be read and rendered anew for each copy.
const largeBody = 64 << 10

// TurnOf returns where a key waits in the queue. The tenant is the root of the tree around the key's namespace, and "" outside of every
// tree. Class 0 comes first in a tenant. It has the keys of all tasks but WriteSlot, because they cost no write of a copy. It also has the
// slots of RoleBindings where a write may take rights away. These slots are urgent, so that no flood of other copies keeps a right alive.
// Class 1 has the other deletions, class 2 the rest. The lane is the source of the copy.
func (s *State) TurnOf(key Key) fairqueue.Attributes {
	w := s.world
	turn := fairqueue.Attributes{Tenant: w.Forest.RootOf(key.Slot.Namespace)}
	if key.Task != WriteSlot {
		// A look at a namespace, or at the limits of a tree, costs no request. A look at a source, or a step of its spread, may cost a read.
		turn.Urgent = key.Task == LookAtNamespace || key.Task == LookAtLimits || GivesRights(key.Slot)
		return turn
	}
	action := w.Plan(key.Slot)
	turn.Class, turn.Lane = 2, action.Source.String()
	if source := w.Sources.At(action.Source); source != nil {
		turn.Burst = 1 + source.Size/largeBody
		if source.Size >= largeBody && (action.Verb == Create || action.Verb == Update) {
			turn.Weight = source.Size
		}
	}
	switch {
	case GivesRights(key.Slot) && action.Verb != Create:
		turn.Class, turn.Weight, turn.Urgent = 0, 0, true
	case action.Verb == Delete:
		turn.Class = 1
	}
	return turn
}

func (Elected) applyTo(s *State) {
	s.measured.leading = true
	for gk := range s.kinds {
		s.queueKind(gk)
	}
}

func (w Started) applyTo(s *State) {
	switch w.Key.Task {
	case LookAtNamespace:
		s.queueSlotsIn(w.Key.Slot.Namespace)
	case LookAtSource:
		s.startSource(w.Key.Slot)
	case SpreadSource:
		s.stepSpread(w.Key.Slot)
	case LookAtLimits:
		s.reviewLimits(w.Key.Slot.Namespace)
	case WriteSlot:
		if s.startSlot(w.Key.Slot); !s.out.hasRequest() {
			s.endRailWait(w.Key.Slot)
		}
	}
}

func (c *collector) hasRequest() bool {
	return slices.ContainsFunc(c.others, func(one Output) bool { _, is := one.(Request); return is })
}

// queueSlotsIn queues every slot in namespace that a plan may concern, and every slot there with a trouble, even if no source wants a copy
// in that slot any longer.
func (s *State) queueSlotsIn(namespace string) {
	slots := s.world.SlotsIn(namespace)
	for slot := range s.troubles.slots[namespace] {
		slots = append(slots, slot)
	}
	s.recordMoves(s.measured.moves.recordPlanned(namespace, slots, s.world.Plan))
	s.queueKeys(slotKeys(slots)...)
}

// startSlot asks for the requests that bring one slot to what it should be, unless they must wait.
func (s *State) startSlot(slot Slot) {
	action, over := s.world.Plan(slot), s.world.Copies.At(slot)
	if s.waitsForRemovals(slot, action) {
		action = Action{Reason: v1alpha1.ReasonWaitingForRemoval}
	}
	if s.waitsForRails(slot, action) || s.waitsForCount(slot, action) || s.waitsInLoop(slot, action, over) {
		return
	}
	k := s.kinds[slot.Kind]
	switch {
	case k == nil || k.resource.Resource == "":
	case action.Reason == v1alpha1.ReasonLimitExceeded:
		s.recordHeld(slot, action)
	case action.Reason == v1alpha1.ReasonConflict:
		s.endMeasured(slot)
		s.recordConflict(slot, action, false)
	case action.Verb == Look:
		s.queueKeys(sourceTask(action.Source))
	case action.Verb == Nothing:
		s.finishSlot(slot, action)
	case action.Verb == Delete:
		s.emitOutput(CheckRemoval{Slot: slot, Action: action, Over: over})
	default:
		s.emitOutput(WriteCopy{Slot: slot, Resource: k.resource, Action: action, Over: over, Probe: action.Verb == Create &&
			s.troubleOf(slot).isBlocked()})
	}
}

func (c RemovalChecked) applyTo(s *State) {
	switch {
	case c.Err == nil && s.world.Plan(c.Slot).Verb == Delete:
		s.removals.unanswered[c.Slot.Namespace]++
		s.emitOutput(WriteCopy{Slot: c.Slot, Resource: s.kinds[c.Slot.Kind].resource, Action: c.Action, Over: c.Over})
		return
	case c.Err == nil: // another worker's read of the namespaces above has shown what the watch will show later
		c.Err = ErrBehind
	}
	s.endSlot(c.Slot, c.Action, c.Err)
}

func (c CopyWritten) applyTo(s *State) {
	s.takeResult(c.Slot, c.WriteCopy, c.Result, c.Err)
	if c.Action.Verb == Delete {
		s.endRemoval(c.Slot.Namespace, c.Err)
	}
	s.endSlot(c.Slot, c.Action, c.Err)
}

// endSlot records how the requests for a slot have ended.
func (s *State) endSlot(slot Slot, action Action, err error) {
	switch {
	case errors.Is(err, ErrBehind):
		s.queueAfter(slotKey(slot), behindRetry)
	case err != nil:
		s.recordFailure(slot, action, err)
	default:
		s.finishSlot(slot, action)
		s.queueOvertaken(slot, action)
	}
	s.endRailWait(slot)
}

// finishSlot is called when nothing more is to be done for an action.
func (s *State) finishSlot(slot Slot, action Action) {
	if !waitsForRemoval(action) {
		s.endMeasured(slot)
	}
	s.clearTrouble(slot, action)
	s.reviewLimitsSoon(slot.Namespace) // a copy that was written may be smaller than the one that it replaced, and leave room
	s.queueBindings(slot)
}

// queueOvertaken queues a slot again if the forest or the source has changed while the slot's request was under way: such a change could
// not queue the slot of a copy that did not exist yet.
func (s *State) queueOvertaken(slot Slot, done Action) {
	now := s.world.Plan(slot)
	if now.Verb == Delete || now.Verb != Nothing && (now.Source != done.Source || now.Hash != done.Hash) {
		s.queueKeys(slotKey(slot))
	}
}

// queueBindings is called after work on the slot role, and does nothing if role is no Role. It queues the copied RoleBindings that name
// role, because they must be deleted together with role. It also queues the RoleBindings in role's namespace that could not be written,
// because they may name role.
func (s *State) queueBindings(role Slot) {
	if role.Kind != roles {
		return
	}
	s.queueKeys(slotKeys(s.world.BindingsTo(role))...)
	for slot := range s.troubles.slots[role.Namespace] {
		if GivesRights(slot) {
			s.queueKeys(slotKey(slot))
		}
	}
}

// Slot is the place of one copy, whether or not the copy exists.
type Slot struct {
	Kind      schema.GroupKind
	Namespace string
	Name      string
}

// String is how logs name a slot.
func (s Slot) String() string { return s.Kind.Kind + " " + s.Namespace + "/" + s.Name }

// At is the slot of the same kind and name in another namespace.
func (s Slot) At(namespace string) Slot {
	s.Namespace = namespace
	return s
}

// SlotsIn returns the slots in namespace that a plan may concern, by kind and name: slots that have a copy, and slots that a source
// reaches.
func (w *World) SlotsIn(namespace string) []Slot {
	found := map[place]bool{}
	if r := w.Copies.rooms[namespace]; r != nil {
		for of := range r.copies {
			found[of.place] = true
		}
	}
	sources, _ := w.Forest.Sources(namespace)
	for _, from := range sources.Names {
		maps.Copy(found, w.Sources.places[from])
	}
	return slotsOf(found, namespace)
}

func slotsOf(places map[place]bool, namespace string) []Slot {
	slots := make([]Slot, 0, len(places))
	for p := range places {
		slots = append(slots, Slot{p.kind, namespace, p.name})
	}
	slices.SortFunc(slots, func(a, b Slot) int {
		return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Name, b.Name))
	})
	return slots
}
