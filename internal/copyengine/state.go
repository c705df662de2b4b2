// Package copyengine is the copying engine as a state machine, which acts on the plans of internal/copies. It is pure:
// its State takes in what has happened (Input), and describes what is to be done (Output). The runner in
// controllers/copies makes the requests.
//
// The State consists of parts. A part owns its fields; whoever wants them asks it. A part knows only the parts above it
// in this list:
//
//	core       settings, World, time, and the Outputs of the Input that is being applied
//	firstWork  what must be done before everything is known
//	watches    what the operator sees: kinds, their watches, and the namespaces that these follow
//	events     the Events that sources have got lately
//	removals   holds writes in a namespace back until copies that must go are gone
//	troubles   what keeps slots and sources from being what they should be, and whether that is known
//	measured   how long changes take
//	repairs    copies that other clients have changed
//	failures   what follows from a request that has failed
//	rails      holds rights back until what limits them is there
//	limits     holds sources back for which a tree has no room
//	objects    takes what watches and answers show into the World
//	spreads    has sources read, and queues the slots that they concern
package copyengine

import (
	"errors"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/forest"
)

// State is the copying engine as a state machine: it knows what the watches and the API server's answers have shown,
// and decides what is to be done. It makes no requests and has no lock, no goroutine and no clock: the runner
// (controllers/copies) calls Apply, one Input after the other, and carries out the Outputs. A standby replica applies
// what its watches show, and works on no keys.
type State struct {
	*core
	first    *firstWork
	watches  *watches
	removals *removals
	troubles *troubles
	measured *measured
	repairs  *repairs
	failures *failures
	rails    *rails
	limits   *limits
	objects  *objects
	spreads  *spreads
}

// NewState returns a State that knows the forest f, and no objects.
func NewState(f *forest.Snapshot, settings Settings) *State {
	c, first := &core{settings: settings, world: copies.NewWorld(f)}, newFirstWork()
	w := newWatches(c, first)
	e := &events{core: c, watches: w, sent: map[notice]time.Time{}}
	gone := &removals{core: c, barriers: map[string]*removalBarrier{}, unanswered: map[string]int{}}
	t := &troubles{core: c, events: e, first: first, removals: gone, slots: map[string]map[copies.Slot]*slotTrouble{},
		invalid: map[string]map[copies.Slot]string{}, unknown: map[copies.Slot]bool{}}
	m := &measured{core: c, watches: w, fanouts: newFanouts(), moves: moves{}}
	r := &repairs{core: c, events: e, found: map[copies.Slot]DriftSource{}, known: copies.NewRepairs()}
	fails := &failures{core: c, events: e, measured: m, troubles: t}
	o := &objects{core: c, measured: m, removals: gone, repairs: r, troubles: t, watches: w, tables: map[schema.GroupKind]*table{},
		unlabelled: map[copies.Slot]string{}, unplaced: map[copies.Slot]*copies.Copy{}, sought: map[copies.Slot]bool{},
		bodies: map[copies.Slot]readVersion{}}
	return &State{
		core: c, first: first, watches: w, removals: gone, troubles: t, measured: m, repairs: r, failures: fails, objects: o,
		rails: &rails{core: c, events: e, troubles: t, watches: w, waits: map[string]*railWait{},
			uncounted: map[string]map[copies.Slot]bool{}},
		limits: &limits{core: c, events: e, measured: m, troubles: t, watches: w},
		spreads: &spreads{core: c, events: e, failures: fails, measured: m, objects: o, troubles: t, watches: w,
			all: map[copies.Slot]*spread{}},
	}
}

// Read calls look with the World, which look must not change.
func (s *State) Read(look func(*copies.World)) { look(s.world) }

// Forest returns the snapshot by which the State plans.
func (s *State) Forest() *forest.Snapshot { return s.world.Forest }

// CheckSynced returns an error that names a kind that is not listed yet; nil if there is none. A kind that is not
// served, that may not be listed, or that is degraded, does not count.
func (s *State) CheckSynced() error { return s.watches.checkSynced() }

// FindScrubParts returns what a pass of the scrub is to read: the copies of each active kind that is not in mode
// Remove. They are read all together where the whole cluster is watched, else one namespace after the other.
func (s *State) FindScrubParts() []copies.ScrubPart { return s.watches.findScrubParts() }

// DescribeBlind returns a sentence for each kind of which nothing can be seen anywhere, in alphabetical order.
func (s *State) DescribeBlind() []string { return s.watches.describeBlind() }

// DescribeUnseen returns a sentence for each narrow kind whose copies in namespace cannot be judged, because the
// operator cannot see them there, or the sources in a namespace above; in alphabetical order.
func (s *State) DescribeUnseen(namespace string) []string { return s.watches.describeUnseen(namespace) }

// LacksRight reports whether a right, or room for more watches, is missing to see a narrow kind in namespace, or its
// sources in a namespace above. A watch that fails for another reason does not count: all watches may fail while the
// API server is overloaded.
func (s *State) LacksRight(namespace string) bool { return s.watches.lacksRight(namespace) }

// HoldsCopies reports whether namespace holds copies that the operator deletes when namespace leaves the forest, or may
// hold such copies without the operator seeing them.
func (s *State) HoldsCopies(namespace string) bool { return s.watches.holdsCopies(namespace) }

// IsKnown reports whether everything that a report on a namespace depends on was looked at since this replica leads:
// what is in it and below it, and the sources above it. Before that, what is not in Troubles may be in trouble all the
// same.
func (s *State) IsKnown(namespace string) bool { return s.troubles.isKnown(namespace) }

// Troubles returns what keeps copies in these namespaces from being what they should be, in alphabetical order. Copies
// that must be removed before others are written are among the troubles once no copy was removed in their namespace for
// Timing.Stuck.
func (s *State) Troubles(namespaces iter.Seq[string]) []copies.Trouble {
	return s.troubles.troublesIn(namespaces)
}

// FindUnchanged returns the copy at slot if all of this is true, else nil: it is ours and in mode update, it still has
// this UID and resourceVersion, its source is known, and the plan sees nothing to do there.
func (s *State) FindUnchanged(slot copies.Slot, uid, resourceVersion string) *copies.Copy {
	return s.repairs.findUnchanged(slot, uid, resourceVersion)
}

// CountKinds returns the numbers of each kind.
func (s *State) CountKinds() []KindCounts {
	held, troubled := s.world.Limits.CountHeld(), s.troubles.countByKind()
	var all []KindCounts
	for gk, k := range s.watches.kinds {
		c := KindCounts{
			Kind: gk, State: k.state, Limited: held[gk.Group][gk.Kind], Unseen: s.watches.countUnseen(k),
			Conflicts: troubled[gk][v1alpha1.ReasonConflict], Rejected: troubled[gk][v1alpha1.ReasonRejected],
		}
		c.Sources, c.Copies = s.world.Len(gk)
		all = append(all, c)
	}
	return all
}

// Apply takes in one Input, and returns what is to be done because of it. The Outputs are to be carried out in their
// order, except that requests may run side by side.
func (s *State) Apply(now time.Time, input Input) []Output {
	s.now = now
	input.applyTo(s)
	s.troubles.followFirst(input)
	return s.out.takeOutputs()
}

func (Elected) applyTo(s *State) {
	s.leading = true
	// A standby applies what its watches show and works on no keys, so nothing was planned until now.
	s.watches.queueAll()
}

func (w Started) applyTo(s *State) {
	switch w.Key.Task {
	case LookAtNamespace:
		s.queueSlotsIn(w.Key.Slot.Namespace)
	case LookAtSource:
		s.spreads.startSource(w.Key.Slot)
	case SpreadSource:
		s.spreads.stepSpread(w.Key.Slot)
	case LookAtLimits:
		s.limits.reviewTree(w.Key.Slot.Namespace)
	case WriteSlot:
		// No answer will follow, so nothing else would end the wait for this rail.
		if s.startSlot(w.Key.Slot); !s.out.hasRequest() {
			s.rails.endWait(w.Key.Slot)
		}
	}
}

func (c RemovalChecked) applyTo(s *State) {
	switch {
	case c.Err == nil && s.world.Plan(c.Slot).Verb == copies.Delete:
		s.removals.beginRemoval(c.Slot.Namespace)
		s.emitOutput(WriteCopy{Slot: c.Slot, Resource: s.watches.kindOf(c.Slot.Kind).resource, Action: c.Action, Over: c.Over,
			flight: s.objects.beginWrite(c.Slot)})
		return
	case c.Err == nil: // another worker's read of the namespaces above has shown what the watch will show later
		c.Err = copies.ErrBehind
	}
	s.endSlot(c.Slot, c.Action, c.Err)
}

func (c CopyWritten) applyTo(s *State) {
	// The World comes first, so that all that follows plans with what this write has shown.
	s.objects.takeResult(c.Slot, c.WriteCopy, c.Result, c.Err)
	s.watches.endWrite(c.Slot.Namespace)
	if c.Result.Written != nil {
		s.rails.noteCount(c.Slot, c.Result.Written)
	}
	if c.Action.Verb == copies.Delete {
		s.removals.endRemoval(c.Slot.Namespace, c.Err)
	}
	s.endSlot(c.Slot, c.Action, c.Err)
}

func (c ForestChanged) applyTo(s *State) {
	// First, because all that follows plans by the new forest.
	s.objects.forgetReplaced(s.world.Forest, c.New, c.Namespaces)
	s.world.Forest = c.New
	s.watches.recordDeparted(c)
	s.objects.changeNamespaces(c.Namespaces)
	for _, namespace := range c.Namespaces {
		s.queueKeys(namespaceKey(namespace))
		// Such sources were doubtful because of their namespace, which has changed now.
		s.objects.seekDoubtful(namespace, func(copies.Slot) bool { return true })
		if c.New.Namespace(namespace) == nil {
			s.rails.dropWait(namespace)
		}
	}
	// Labels and places of namespaces decide how many copies a source claims.
	s.queueHeldBack()
	s.troubles.dropNamespaces(c)
	s.measured.beginMoves(c)
	s.emitOutput(FollowSoon{})
}

func (t Ticked) applyTo(s *State) {
	if (t.Idle || t.Synced) && !s.first.done && s.watches.checkSynced() == nil {
		s.troubles.completeFirst(t.Idle)
	}
	s.removals.reportStuck()
}

func (r BodyRead) applyTo(s *State) { s.objects.takeBody(r) }

func (FollowDue) applyTo(s *State) { s.watches.followNamespaces() }

func (o ObjectSeen) applyTo(s *State) {
	s.objects.takeObject(o.Watch, o.Object)
	if o.Role.showsCopies() {
		s.rails.noteCount(o.slotOf(o.Object), o.Object)
	}
}

func (c WatchChanged) applyTo(s *State) { s.objects.changeWatch(c) }

func (r SourceRead) applyTo(s *State) { s.spreads.endSource(r.Source, r.Err, true) }

func (o ObjectGone) applyTo(s *State) {
	s.objects.takeEnd(o)
	s.rails.dropCount(o.slotOf(o.Object))
}

func (l Listed) applyTo(s *State) {
	s.objects.takeList(l)
	for _, object := range l.Objects {
		if l.Role.showsCopies() {
			s.rails.noteCount(l.slotOf(object), object)
		}
	}
}

func (r RightsAsked) applyTo(s *State) { s.rails.answerRights(r.Namespace) }

func (l LossFound) applyTo(s *State) { s.spreads.takeLoss(l) }

func (d DriftFound) applyTo(s *State) { s.repairs.takeDrift(d) }

// largeBody is a size of a source, in bytes. From this size on, one turn of the source's lane writes several copies,
// one after the other, and these writes have a weight (see fairqueue.Attributes). With turns of one copy each, twenty
// sources of 1 MiB, whose bodies do not fit into memory together, would be read and rendered anew for each copy.
const largeBody = 64 << 10

// TurnOf returns where a key waits in the queue. The tenant is the root of the tree around the key's namespace, and ""
// outside of every tree. Class 0 comes first in a tenant. It has the keys of all tasks but WriteSlot, because they cost
// no write of a copy. It also has the slots of RoleBindings where a write may take rights away. These slots are urgent,
// so that no flood of other copies keeps a right alive. Class 1 has the other deletions, class 2 the rest. The lane is
// the source of the copy.
func (s *State) TurnOf(key Key) fairqueue.Attributes {
	w := s.world
	turn := fairqueue.Attributes{Tenant: w.Forest.RootOf(key.Slot.Namespace)}
	if key.Task != WriteSlot {
		// A look at a namespace, or at the limits of a tree, costs no request. A look at a source, or a step of its
		// spread, may cost a read.
		turn.Urgent = key.Task == LookAtNamespace || key.Task == LookAtLimits || copies.GivesRights(key.Slot)
		return turn
	}
	action := w.Plan(key.Slot)
	turn.Class, turn.Lane = 2, action.Source.ID()
	if source := w.Sources.At(action.Source); source != nil {
		turn.Burst = 1 + source.Size/largeBody
		if source.Size >= largeBody && (action.Verb == copies.Create || action.Verb == copies.Update) {
			turn.Weight = source.Size
		}
	}
	switch {
	case copies.GivesRights(key.Slot) && action.Verb != copies.Create:
		// No Create: such a write may take rights away, and no flood of other copies may keep a right alive.
		turn.Class, turn.Weight, turn.Urgent = 0, 0, true
	// Before what is written: it may grant or allow what its namespace must not have any more.
	case action.Verb == copies.Delete:
		turn.Class = 1
	}
	return turn
}

// queueSlotsIn queues every slot in namespace that a plan may concern, and every slot there with a trouble, even if no
// source wants a copy in that slot any longer.
func (s *State) queueSlotsIn(namespace string) {
	slots := s.world.SlotsIn(namespace)
	slots = append(slots, s.troubles.slotsIn(namespace)...)
	s.measured.recordPlanned(namespace, slots)
	s.queueKeys(slotKeys(slots)...)
}

// startSlot asks for the requests that bring one slot to what it should be, unless they must wait.
func (s *State) startSlot(slot copies.Slot) {
	action, over := s.world.Plan(slot), s.world.Copies.At(slot)
	if s.removals.holdsBack(slot, action) {
		action = copies.Action{Reason: v1alpha1.ReasonWaitingForRemoval}
	}
	if s.rails.holdsBack(slot, action) || s.limits.holdsBack(slot, action) || s.repairs.holdsBack(slot, action, over) {
		return
	}
	k := s.watches.kindOf(slot.Kind)
	switch {
	// The API server doesn't serve the kind: all its slots are queued once the kind is active.
	case k == nil || k.resource.Resource == "":
	case action.Reason == v1alpha1.ReasonLimitExceeded:
		s.limits.recordHeld(slot, action)
	case action.Reason == v1alpha1.ReasonConflict:
		s.measured.endSlot(slot)
		s.failures.recordConflict(slot, action, false)
	case action.Verb == copies.Look:
		// The source has a key of its own, so that all slots below it share one read.
		s.queueKeys(sourceTask(action.Source))
	case action.Verb == copies.Nothing:
		s.finishSlot(slot, action)
	case action.Verb == copies.Delete:
		// The watch of Namespaces may be behind, so the namespaces above are read before each deletion (PROP-V6).
		s.emitOutput(CheckRemoval{Slot: slot, Action: action, Over: over})
	default:
		// A slot whose last try found an object is probed by a read of metadata, not by another POST (PROP-I10).
		s.emitOutput(WriteCopy{Slot: slot, Resource: k.resource, Action: action, Over: over, flight: s.objects.beginWrite(slot),
			Probe: action.Verb == copies.Create && s.troubles.troubleAt(slot).isBlocked()})
	}
}

// endSlot records how the requests for a slot have ended.
func (s *State) endSlot(slot copies.Slot, action copies.Action, err error) {
	switch {
	case errors.Is(err, copies.ErrBehind):
		s.queueAfter(slotKey(slot), behindRetry)
	case err != nil:
		s.failures.recordFailure(slot, action, err)
	default:
		s.finishSlot(slot, action)
		s.queueOvertaken(slot, action)
	}
	// Also after a failure: a rail whose name another object has must not hold rights back (PROP-O6).
	s.rails.endWait(slot)
}

// finishSlot is called when nothing more is to be done for an action.
func (s *State) finishSlot(slot copies.Slot, action copies.Action) {
	// A slot that waits is not done: its time runs on.
	if !waitsForRemoval(action) {
		s.measured.endSlot(slot)
	}
	s.troubles.clearTrouble(slot, action)
	s.reviewLimitsSoon(slot.Namespace) // a copy that was written may be smaller than the one that it replaced, and leave room
	s.queueBindings(slot)
}

// queueOvertaken queues a slot again if the forest or the source has changed while the slot's request was under way:
// such a change could not queue the slot of a copy that did not exist yet.
func (s *State) queueOvertaken(slot copies.Slot, done copies.Action) {
	now := s.world.Plan(slot)
	if now.Verb == copies.Delete || now.Verb != copies.Nothing && (now.Source != done.Source || now.Hash != done.Hash) {
		s.queueKeys(slotKey(slot))
	}
}

// queueBindings is called after work on the slot role, and does nothing if role is no Role. It queues the copied
// RoleBindings that name role, because they must be deleted together with role. It also queues the RoleBindings in
// role's namespace that could not be written, because they may name role.
func (s *State) queueBindings(role copies.Slot) {
	if role.Kind != copies.RoleKind {
		return
	}
	s.queueNaming(role)
	for _, slot := range s.troubles.slotsIn(role.Namespace) {
		if copies.GivesRights(slot) {
			s.queueKeys(slotKey(slot))
		}
	}
}
