package copies

import (
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// planner plans one slot, from what the world knew when the planner was made. It changes nothing.
type planner struct {
	world *World
	slot  Slot
	// copied is what stands at slot with the label inherited-from, ours or not; nil if nothing does.
	copied *record
	// sources are above the slot's namespace. managed is false where nothing may be given, because the namespace is halted or protected.
	sources forest.Sources
	managed bool
}

func (w *World) planner(slot Slot) planner {
	p := planner{world: w, slot: slot, copied: w.Copies.record(slot)}
	p.sources, p.managed = w.Forest.Sources(slot.Namespace)
	return p
}

// sees says whether the operator sees all that the plan rests on: the copies in the slot's namespace, and the sources above.
func (p *planner) sees() bool { return p.world.Sights.sees(p.slot, p.world.Forest, p.sources.Names...) }

// wanted finds the source of this kind and name that reaches the slot; of several, the first in the order of candidates. The verdict is
// frozen if that source can't be judged, or was not read yet.
func (p *planner) wanted() (Slot, *Source, verdict) {
	for at, s := range p.candidates() {
		switch {
		case s.Mode == v1alpha1.ModeNone && s.Invalid == "":
			continue
		case s.Invalid != "" || s.Terminating: // sources in a terminating namespace are no candidates
			return at, s, frozen
		case s.Excluded != "":
			continue
		case !s.selects(p.world.Forest, p.slot.Namespace):
			continue
		case s.Content == "":
			return at, s, frozen
		}
		return at, s, wanted
	}
	return Slot{}, nil, unwanted
}

// planAbsent plans for a slot in which nothing of ours stands. A copy that is not ours is somebody else's object, and an obstacle.
func (p *planner) planAbsent() Action {
	at, s, v := p.wanted()
	if v != wanted {
		return p.planUnread(at, s)
	}
	if p.copied != nil || p.world.Sources.At(p.slot) != nil {
		if s.Mode == v1alpha1.ModeCreate {
			return Action{} // in mode create, any object of that name will do
		}
		return Action{Source: at, Reason: v1alpha1.ReasonConflict}
	}
	return p.write(Create, at, s)
}

// planKept plans for a copy in mode create: its content belongs to its namespace.
func (p *planner) planKept() Action {
	at, s, v := p.wanted()
	switch {
	case s != nil && s.Mode == v1alpha1.ModeCreate && s.Role != "" && p.copied.content != Unwritten && !p.hasRole(at, s.Role):
		return Action{Verb: Delete, Source: at}
	case s != nil && s.Mode == v1alpha1.ModeCreate:
		return Action{}
	case v != wanted:
		return p.planUnread(at, s)
	case at.Namespace != p.copied.from:
		return Action{Source: at, Reason: v1alpha1.ReasonConflict}
	}
	return p.write(Update, at, s)
}

// planCopy plans for a copy in mode update.
func (p *planner) planCopy() Action {
	c := p.copied
	from := p.slot.At(c.from)
	if !p.sources.Has(c.from) {
		if p.sources.Frozen(c.from) {
			return Action{}
		}
		return Action{Verb: Delete, Source: from}
	}
	at, s, v := p.wanted()
	switch {
	case v == frozen:
		return p.planUnread(at, s)
	case v == unwanted:
		return p.planRemoval(from)
	case at.Namespace != c.from && p.world.Sources.At(from) == nil && p.world.Loss(from) != Confirmed:
		return p.planRemoval(from)
	}
	if s.Role != "" && !p.hasRole(at, s.Role) {
		return Action{Verb: Delete, Source: from}
	}
	other := at.Namespace != c.from || s.Mode != c.mode() || s.Content != c.content
	switch {
	case other || c.flags.has(drifted) || c.digest == 0 && c.flags.has(marked):
		return p.write(Update, at, s)
	case c.digest == 0 && (c.flags.has(foreign) || c.meta != s.Meta):
		return p.write(Inspect, at, s)
	}
	return Action{}
}

// planUnread plans for a slot whose source s, which may be nil, is not to be written: a source that was not read yet is read first.
func (p *planner) planUnread(at Slot, s *Source) Action {
	if s == nil || !s.IsUnread() {
		return Action{}
	}
	return Action{Verb: Look, Source: at}
}

// planRemoval plans for a copy from a source that wants it no longer. A missing source is looked for by a live read first: the watch may be
// behind, or the source's whole namespace may be going.
func (p *planner) planRemoval(from Slot) Action {
	if p.world.Sources.At(from) != nil {
		return Action{Verb: Delete, Source: from}
	}
	switch p.world.Loss(from) {
	case Confirmed:
		return Action{Verb: Delete, Source: from}
	case Doubtful, GoneWithNamespace:
		return Action{}
	}
	return Action{Verb: Look, Source: from}
}

// write returns the action verb (Create, Update or Inspect) for the source s, which stands at at. If copies from namespaces that are no
// longer above must go first, or limits hold s back, the action has a Reason in place of the verb.
func (p *planner) write(verb Verb, at Slot, s *Source) Action {
	if r := p.world.Copies.rooms[p.slot.Namespace]; r != nil {
		for _, from := range r.froms {
			if !p.sources.Has(from.namespace) && !p.sources.Frozen(from.namespace) {
				return Action{Source: at, Reason: v1alpha1.ReasonWaitingForRemoval}
			}
		}
	}
	if p.world.Limits.isHeld(verb, at, s, p.copied) {
		return Action{Source: at, Reason: v1alpha1.ReasonLimitExceeded}
	}
	return Action{Verb: verb, Source: at, Hash: Hash{s.Mode, PlaceOf(p.slot, at.Namespace), s.Content}}
}

// awaitsSource says whether the source that reaches the slot is known, but was not read yet.
func (p *planner) awaitsSource() bool {
	kind := p.world.kinds[p.slot.Kind]
	if !p.managed || !kind.synced || kind.mode == Remove || !p.sees() {
		return false
	}
	_, s, v := p.wanted()
	return v == frozen && s.IsUnread()
}
