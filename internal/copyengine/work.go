package copyengine

import (
	"errors"
	"maps"
	"slices"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/fairqueue"
)

// Apply takes in one Input, and returns what is to be done because of it. The Outputs are to be carried out in their order, except that
// requests may run side by side.
func (s *State) Apply(now time.Time, input Input) []Output {
	s.now = now
	input.applyTo(s)
	s.followFirst(input)
	return s.out.take()
}

// Task is what a Key asks for.
type Task int8

// The tasks.
const (
	LookAtNamespace Task = iota // queue every slot in a namespace
	LookAtSource                // read a source, or find out whether it is gone
	SpreadSource                // queue the next slots that a source concerns
	LookAtLimits                // queue the sources for which the limits of a tree leave room again
	WriteSlot                   // bring one slot to what it should be
)

// Key is one piece of work in the queue. Equal keys wait there only once.
type Key struct {
	Task Task
	Slot copies.Slot // LookAtNamespace and LookAtLimits use its Namespace alone; for LookAtLimits, it is the root of the tree
}

func namespaceKey(namespace string) Key {
	return Key{LookAtNamespace, copies.Slot{Namespace: namespace}}
}

func limitsKey(root string) Key        { return Key{LookAtLimits, copies.Slot{Namespace: root}} }
func sourceTask(slot copies.Slot) Key  { return Key{LookAtSource, slot} }
func spreadKey(source copies.Slot) Key { return Key{SpreadSource, source} }
func slotKey(slot copies.Slot) Key     { return Key{WriteSlot, slot} }

func slotKeys(slots []copies.Slot) []Key {
	keys := make([]Key, len(slots))
	for i, slot := range slots {
		keys[i] = slotKey(slot)
	}
	return keys
}

// collector gathers the Outputs of one Input. Each key and each namespace is in it once.
type collector struct {
	keys    []Key
	queued  map[Key]bool
	reports map[string]bool
	others  []Output
}

func (c *collector) take() []Output {
	all := c.others
	if len(c.reports) > 0 {
		all = append(all, Report{Namespaces: slices.Sorted(maps.Keys(c.reports))})
	}
	if len(c.keys) > 0 {
		all = append(all, Queue{Keys: c.keys})
	}
	*c = collector{}
	return all
}

func (c *collector) hasRequest() bool {
	return slices.ContainsFunc(c.others, func(one Output) bool { _, is := one.(Request); return is })
}

// queueKeys queues keys without a delay.
func (s *State) queueKeys(keys ...Key) {
	if s.out.queued == nil {
		s.out.queued = make(map[Key]bool, len(keys))
	}
	for _, key := range keys {
		if !s.out.queued[key] {
			s.out.queued[key] = true
			s.out.keys = append(s.out.keys, key)
		}
	}
}

// queueAfter queues a key after a delay.
func (s *State) queueAfter(key Key, delay time.Duration) {
	s.out.others = append(s.out.others, Queue{Keys: []Key{key}, After: max(delay, 1)})
}

// emitOutput adds an Output.
func (s *State) emitOutput(one Output) { s.out.others = append(s.out.others, one) }

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
		turn.Urgent = key.Task == LookAtNamespace || key.Task == LookAtLimits || copies.GivesRights(key.Slot)
		return turn
	}
	action := w.Plan(key.Slot)
	turn.Class, turn.Lane = 2, action.Source.String()
	if source := w.Sources.At(action.Source); source != nil {
		turn.Burst = 1 + source.Size/largeBody
		if source.Size >= largeBody && (action.Verb == copies.Create || action.Verb == copies.Update) {
			turn.Weight = source.Size
		}
	}
	switch {
	case copies.GivesRights(key.Slot) && action.Verb != copies.Create:
		turn.Class, turn.Weight, turn.Urgent = 0, 0, true
	case action.Verb == copies.Delete:
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
func (s *State) startSlot(slot copies.Slot) {
	action, over := s.world.Plan(slot), s.world.Copies.At(slot)
	if s.waitsForRemovals(slot, action) {
		action = copies.Action{Reason: v1alpha1.ReasonWaitingForRemoval}
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
	case action.Verb == copies.Look:
		s.queueKeys(sourceTask(action.Source))
	case action.Verb == copies.Nothing:
		s.finishSlot(slot, action)
	case action.Verb == copies.Delete:
		s.emitOutput(CheckRemoval{Slot: slot, Action: action, Over: over})
	default:
		s.emitOutput(WriteCopy{Slot: slot, Resource: k.resource, Action: action, Over: over, Probe: action.Verb == copies.Create &&
			s.troubleOf(slot).isBlocked()})
	}
}

func (c RemovalChecked) applyTo(s *State) {
	switch {
	case c.Err == nil && s.world.Plan(c.Slot).Verb == copies.Delete:
		s.removals.unanswered[c.Slot.Namespace]++
		s.emitOutput(WriteCopy{Slot: c.Slot, Resource: s.kinds[c.Slot.Kind].resource, Action: c.Action, Over: c.Over})
		return
	case c.Err == nil: // another worker's read of the namespaces above has shown what the watch will show later
		c.Err = copies.ErrBehind
	}
	s.endSlot(c.Slot, c.Action, c.Err)
}

func (c CopyWritten) applyTo(s *State) {
	s.takeResult(c.Slot, c.WriteCopy, c.Result, c.Err)
	if c.Action.Verb == copies.Delete {
		s.endRemoval(c.Slot.Namespace, c.Err)
	}
	s.endSlot(c.Slot, c.Action, c.Err)
}

// endSlot records how the requests for a slot have ended.
func (s *State) endSlot(slot copies.Slot, action copies.Action, err error) {
	switch {
	case errors.Is(err, copies.ErrBehind):
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
func (s *State) finishSlot(slot copies.Slot, action copies.Action) {
	if !waitsForRemoval(action) {
		s.endMeasured(slot)
	}
	s.clearTrouble(slot, action)
	s.reviewLimitsSoon(slot.Namespace) // a copy that was written may be smaller than the one that it replaced, and leave room
	s.queueBindings(slot)
}

// queueOvertaken queues a slot again if the forest or the source has changed while the slot's request was under way: such a change could
// not queue the slot of a copy that did not exist yet.
func (s *State) queueOvertaken(slot copies.Slot, done copies.Action) {
	now := s.world.Plan(slot)
	if now.Verb == copies.Delete || now.Verb != copies.Nothing && (now.Source != done.Source || now.Hash != done.Hash) {
		s.queueKeys(slotKey(slot))
	}
}

// queueBindings is called after work on the slot role, and does nothing if role is no Role. It queues the copied RoleBindings that name
// role, because they must be deleted together with role. It also queues the RoleBindings in role's namespace that could not be written,
// because they may name role.
func (s *State) queueBindings(role copies.Slot) {
	if role.Kind != copies.RoleKind {
		return
	}
	s.queueKeys(slotKeys(s.world.BindingsTo(role))...)
	for slot := range s.troubles.slots[role.Namespace] {
		if copies.GivesRights(slot) {
			s.queueKeys(slotKey(slot))
		}
	}
}

// removals hold back writes in a namespace until the copies that a move takes away from it are deleted.
type removals struct {
	barriers   map[string]*removalBarrier // by namespace
	unanswered map[string]int             // by namespace: DELETEs without an answer yet
}

// removalBarrier delays writes in one namespace.
type removalBarrier struct {
	since    time.Time
	reported bool // the barrier has lasted for Timing.Stuck, and its namespace was reported
}

func newRemovals() removals {
	return removals{barriers: map[string]*removalBarrier{}, unanswered: map[string]int{}}
}

// waitsForRemoval reports whether an action is held back because copies must be deleted before.
func waitsForRemoval(action copies.Action) bool {
	return action.Reason == v1alpha1.ReasonWaitingForRemoval
}

// waitsForRemovals reports whether an action at slot must wait for removals in its namespace, and if so raises a barrier there. An action
// waits because its plan says so, or because a DELETE in the namespace is not answered yet, even if a watch has already shown that the copy
// is gone.
func (s *State) waitsForRemovals(slot copies.Slot, action copies.Action) bool {
	waits := waitsForRemoval(action) || (action.Verb == copies.Create || action.Verb == copies.Update) &&
		s.removals.unanswered[slot.Namespace] > 0
	if waits && s.removals.barriers[slot.Namespace] == nil {
		s.removals.barriers[slot.Namespace] = &removalBarrier{since: s.now}
	}
	return waits
}

// endBarrier takes the barrier of a namespace away, if it has one, and queues the namespace.
func (s *State) endBarrier(namespace string) {
	if s.dropBarrier(namespace) {
		s.queueKeys(namespaceKey(namespace))
	}
}

// dropBarrier takes the barrier of a namespace away, and reports whether there was one.
func (s *State) dropBarrier(namespace string) bool {
	barrier := s.removals.barriers[namespace]
	delete(s.removals.barriers, namespace)
	if barrier != nil && barrier.reported {
		s.reportNamespaces(namespace)
	}
	return barrier != nil
}

// endRemoval is called when a DELETE in namespace was answered.
func (s *State) endRemoval(namespace string, err error) {
	s.removals.unanswered[namespace]--
	if s.removals.unanswered[namespace] > 0 {
		return
	}
	delete(s.removals.unanswered, namespace)
	switch {
	case err == nil:
		s.endBarrier(namespace)
	case s.removals.barriers[namespace] != nil:
		s.queueIndependent(namespace)
	}
}

// queueIndependent queues the slots in namespace that need not wait for a removal that has failed. The removal is tried again by itself.
func (s *State) queueIndependent(namespace string) {
	waits := false
	for _, slot := range s.world.SlotsIn(namespace) {
		switch action := s.world.Plan(slot); {
		case waitsForRemoval(action):
			waits = true
		case action.Verb == copies.Create || action.Verb == copies.Update:
			s.queueKeys(slotKey(slot))
		}
	}
	if !waits {
		s.dropBarrier(namespace)
	}
}

// reportStuck reports the namespaces that have waited for Timing.Stuck without the removal of a copy.
func (s *State) reportStuck() {
	for namespace, barrier := range s.removals.barriers {
		if !barrier.reported && s.now.Sub(barrier.since) >= s.settings.Timing.Stuck {
			barrier.reported = true
			s.reportNamespaces(namespace)
		}
	}
}

// findLeaving returns the copies in namespace that are to be removed, or are being removed.
func (s *State) findLeaving(namespace string) map[copies.Slot]*copies.Copy {
	all := map[copies.Slot]*copies.Copy{}
	for _, slot := range s.world.SlotsIn(namespace) {
		c := s.world.Copies.At(slot)
		if c != nil && c.Ours && (c.Terminating || s.world.Plan(slot).Verb == copies.Delete) {
			all[slot] = c
		}
	}
	return all
}
