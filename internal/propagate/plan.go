package propagate

import (
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Verb is what an action does.
type Verb int

// The verbs. Look means: read the source at Action.Source live, and note its Loss or its content, before anything is
// deleted or written because of it. Inspect means: read the copy, which may have been changed while nobody watched. Withdraw
// means: take away from an access copy what its source no longer gives, and add nothing.
const (
	Nothing Verb = iota
	Create
	Update
	Delete
	Look
	Inspect
	Withdraw
)

// Action is what takes one slot from what stands there to what should.
type Action struct {
	Verb Verb
	// Source is where the content comes from; for a Delete, where it came from.
	Source Slot
	// Hash is what the copy will carry.
	Hash Hash
	// Reason is why nothing can be done although something is wanted: Conflict, WaitingForRemoval, LimitExceeded; or "".
	Reason v1alpha1.Reason
}

// verdict says whether a source is wanted at a place.
type verdict int

const (
	unwanted verdict = iota
	wanted
	frozen // a source above can't be judged: nothing of this kind and name is written or deleted
)

// Plan says what to do at slot now. Planned again after the action, the answer is Nothing.
func (w *World) Plan(slot Slot) Action {
	kind, known := w.kinds[slot.Kind]
	if !known || !kind.synced {
		return Action{}
	}
	c := w.record(slot)
	if c != nil && c.flags.has(terminating) {
		return Action{}
	}
	sources, ok := w.Forest.Sources(slot.Namespace)
	if !ok {
		return w.planWithdrawal(slot, c)
	}
	if !w.sees(slot, sources.Names...) {
		return Action{}
	}
	if kind.mode == Remove {
		if c != nil && c.binding() {
			return Action{Verb: Delete, Source: slot.At(c.from)}
		}
		return Action{}
	}
	switch {
	case c == nil || !c.flags.has(ours):
		return w.planAbsent(slot, sources, c != nil)
	case c.flags.has(modeCreate):
		return w.planKept(slot, sources, c)
	}
	return w.planCopy(slot, sources, c)
}

// wanted finds the source of this kind and name that reaches the slot; of several, the first in the order of candidates. The verdict is
// frozen if that source can't be judged, or was not read yet.
func (w *World) wanted(slot Slot, sources forest.Sources) (Slot, *Source, verdict) {
	for at, s := range w.candidates(slot, sources) {
		switch {
		case s.Mode == v1alpha1.ModeNone && s.Invalid == "":
			continue
		case s.Invalid != "" || s.Terminating: // sources in a terminating namespace are no candidates
			return at, s, frozen
		case s.Excluded != "":
			continue
		case !s.selects(w.Forest, slot.Namespace):
			continue
		case s.Content == "":
			return at, s, frozen
		}
		return at, s, wanted
	}
	return Slot{}, nil, unwanted
}

// selects matches the namespace's labels; tree labels come from the forest, so that a label that is still to be written
// counts.
func (s *Source) selects(f *forest.Snapshot, namespace string) bool {
	return s.Selector == nil || s.Selector.Empty() || s.Selector.Matches(labels.Set(f.SelectableLabels(namespace)))
}

// planAbsent plans for a slot in which nothing of ours stands; obstacle says that somebody else's object is known there.
func (w *World) planAbsent(slot Slot, sources forest.Sources, obstacle bool) Action {
	at, s, v := w.wanted(slot, sources)
	if v != wanted {
		return Action{}
	}
	if obstacle || w.sources[slot.source()] != nil {
		if s.Mode == v1alpha1.ModeCreate {
			return Action{} // in mode create, any object of that name will do
		}
		return Action{Source: at, Reason: v1alpha1.ReasonConflict}
	}
	return w.write(Create, slot, at, s, sources)
}

// planKept plans for a copy in mode create: its content belongs to its namespace.
func (w *World) planKept(slot Slot, sources forest.Sources, c *record) Action {
	at, s, v := w.wanted(slot, sources)
	switch {
	case v != wanted || s.Mode == v1alpha1.ModeCreate:
		return Action{}
	case at.Namespace != c.from:
		return Action{Source: at, Reason: v1alpha1.ReasonConflict}
	}
	return w.write(Update, slot, at, s, sources)
}

// planCopy plans for a copy in mode update.
func (w *World) planCopy(slot Slot, sources forest.Sources, c *record) Action {
	from := slot.At(c.from)
	if !sources.Has(c.from) {
		if sources.Frozen(c.from) {
			return Action{}
		}
		return Action{Verb: Delete, Source: from}
	}
	at, s, v := w.wanted(slot, sources)
	switch {
	case v == frozen:
		return Action{}
	case v == unwanted:
		return w.planRemoval(from)
	case at.Namespace != c.from && w.sources[from.source()] == nil && w.lost[from.source()] != Confirmed:
		return w.planRemoval(from)
	}
	other := at.Namespace != c.from || s.Mode != c.mode() || s.Content != c.content
	switch {
	case other || c.flags.has(drifted) || c.digest == 0 && c.flags.has(marked):
		return w.write(Update, slot, at, s, sources)
	case c.digest == 0 && (c.flags.has(foreign) || c.meta != s.Meta):
		return w.write(Inspect, slot, at, s, sources)
	}
	return Action{}
}

// planRemoval plans for a copy that no source wants any more. A missing source is looked for by a live read first: the watch may be behind,
// or the source's whole namespace may be going.
func (w *World) planRemoval(from Slot) Action {
	if w.sources[from.source()] != nil {
		return Action{Verb: Delete, Source: from}
	}
	switch w.lost[from.source()] {
	case Confirmed:
		return Action{Verb: Delete, Source: from}
	case Doubtful, GoneWithNamespace:
		return Action{}
	}
	return Action{Verb: Look, Source: from}
}

// write returns the action verb (Create, Update or Inspect) for the source s, which stands at at. If copies from namespaces that are no
// longer above must go first, or limits hold s back, the action has a Reason in place of the verb.
func (w *World) write(verb Verb, slot, at Slot, s *Source, sources forest.Sources) Action {
	if r := w.rooms[slot.Namespace]; r != nil {
		for _, from := range r.froms {
			if !sources.Has(from.namespace) && !sources.Frozen(from.namespace) {
				return Action{Source: at, Reason: v1alpha1.ReasonWaitingForRemoval}
			}
		}
	}
	if w.isHeld(verb, at, s, w.record(slot)) {
		return Action{Source: at, Reason: v1alpha1.ReasonLimitExceeded}
	}
	return Action{Verb: verb, Source: at, Hash: Hash{s.Mode, PlaceOf(slot, at.Namespace), s.Content}}
}
