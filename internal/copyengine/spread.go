package copyengine

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// spreadStep is how many namespaces one step of a spread looks at, unless Settings say otherwise: the runner holds its lock for one step,
// however many namespaces there are.
const spreadStep = 32

// spread walks in steps over the slots that a source concerns: a slot in every namespace below the source, and the slot of every copy of
// it.
type spread struct {
	source copies.Slot
	// seeking reports that the source was not read yet: the spread looks for a slot whose plan asks for the body, and queues nothing.
	seeking bool
	// wasRead reports that a read of the source has just ended.
	wasRead bool

	below   []string // namespaces below the source that are next; those below them follow
	copied  []string // namespaces that have a copy; they follow after below, unless they were in it
	visited map[string]bool
}

// newSpread returns a spread of source in the world w. begin, modulo the number of children and instances, decides which of these comes
// first, so that no namespace is always the last.
func newSpread(w *copies.World, source copies.Slot, begin int64) *spread {
	first := slices.Concat(w.Forest.Children(source.Namespace), w.Forest.Instances(source.Namespace))
	p := &spread{source: source, visited: map[string]bool{}, below: make([]string, 0, len(first)), copied: w.Copies.NamespacesWith(source)}
	if n := int64(len(first)); n > 0 {
		p.below = append(append(p.below, first[begin%n:]...), first[:begin%n]...)
	}
	return p
}

// isOver reports whether next has returned all slots.
func (p *spread) isOver() bool { return len(p.below) == 0 && len(p.copied) == 0 }

// next returns the slots of one step. In a step it looks at as many namespaces as parameter most says, or fewer. Each slot is returned
// once, even in a cycle of namespaces.
func (p *spread) next(f *forest.Snapshot, most int) (slots []copies.Slot) {
	for range most {
		isBelow, from := true, &p.below
		if len(p.below) == 0 {
			isBelow, from = false, &p.copied
		}
		if len(*from) == 0 {
			return slots
		}
		name := (*from)[0]
		*from = (*from)[1:]
		if p.visited[name] || isBelow && name == p.source.Namespace {
			continue
		}
		p.visited[name] = true
		slots = append(slots, p.source.At(name))
		if isBelow {
			p.below = append(append(p.below, f.Children(name)...), f.Instances(name)...)
		}
	}
	return slots
}

// startSource asks for a read of a source whose present version was not read yet, or for a look at a source that is missing. A source
// without copies, unless it gives rights, is read only if the plan of a slot asks for that: a spread finds out. If nothing is to be read,
// startSource queues every slot that the source concerns.
func (s *State) startSource(slot copies.Slot) {
	known, k := s.world.Sources.At(slot), s.kinds[slot.Kind]
	switch {
	case !s.world.SeesSource(slot): // the source is queued again when the operator sees its namespace
		s.clearTransient(slot)
		return
	case known == nil && s.needsLoss(slot):
		if k.resource.Resource != "" {
			s.sought[slot] = true
			s.emitOutput(FindLoss{Source: slot, Resource: k.resource, Mode: k.Mode})
		}
		return
	case known == nil:
	case known.Invalid != "":
		s.announceSource(slot, known.UID, true, v1alpha1.ReasonInvalidSource, known.Invalid)
	case known.IsUnread() && (copies.GivesRights(slot) || s.world.Copies.HasCopyOf(slot)):
		s.requestSource(slot)
		return
	case known.IsUnread():
		s.beginSpread(slot, spread{seeking: true})
		return
	}
	s.finishSource(slot, false)
}

// needsLoss reports whether copies exist whose source is missing, and no read has looked for the source yet.
func (s *State) needsLoss(slot copies.Slot) bool {
	return s.world.Copies.HasCopyOf(slot) && s.world.Loss(slot) == copies.Unverified
}

// requestSource asks for a read of a source. The body is needed if the source reaches a slot, if copies of it exist, because their size
// counts toward limits, and if it gives rights. The body of any other source is read when a namespace comes below it, or gets labels that
// its selector selects: then the plan of a slot asks for it.
func (s *State) requestSource(slot copies.Slot) {
	if resource := s.kinds[slot.Kind].resource; resource.Resource != "" {
		s.emitOutput(ReadSource{Source: slot, Resource: resource})
	}
}

// asksFor returns a function that reports whether the plan of a slot asks for a read of source.
func (s *State) asksFor(source copies.Slot) func(copies.Slot) bool {
	return func(slot copies.Slot) bool {
		action := s.world.Plan(slot)
		return action.Verb == copies.Look && action.Source == source
	}
}

func (r SourceRead) applyTo(s *State) { s.endSource(r.Source, r.Err, true) }

func (l LossFound) applyTo(s *State) {
	if !s.sought[l.Source] { // a watch has shown something newer
		s.queueKeys(sourceTask(l.Source))
		return
	}
	delete(s.sought, l.Source)
	if l.Err == nil {
		s.world.SetLoss(l.Source, l.Loss)
	}
	s.endSource(l.Source, l.Err, false)
}

func (s *State) endSource(slot copies.Slot, err error, wasRead bool) {
	if err != nil && !apierrors.IsNotFound(err) {
		s.retryLater(sourceTask(slot), err)
		return
	}
	s.finishSource(slot, wasRead)
}

// finishSource begins to queue every slot that a source concerns, after everything is known of the source that can be known now.
func (s *State) finishSource(slot copies.Slot, wasRead bool) {
	s.clearTransient(slot)
	known := s.world.Sources.At(slot)
	s.recordInvalid(slot, known)
	if known != nil && known.Excluded != "" && known.Maker == copies.Labelled && known.Mode != v1alpha1.ModeNone {
		s.announceSource(slot, known.UID, true, v1alpha1.ReasonSourceExcluded, known.Excluded)
	}
	s.measured.fanouts.open(slot)
	s.beginSpread(slot, spread{wasRead: wasRead})
}

// beginSpread begins a spread, in place of one of the same source that is not over, and takes its first step. seeking and wasRead are those
// of purpose.
func (s *State) beginSpread(source copies.Slot, purpose spread) {
	p := newSpread(s.world, source, s.now.UnixNano())
	p.seeking, p.wasRead = purpose.seeking, purpose.wasRead
	s.spreads[source] = p
	s.stepSpread(source)
}

// stepSpread takes the next step of the spread of a source, and queues the step after it.
func (s *State) stepSpread(source copies.Slot) {
	p := s.spreads[source]
	if p == nil { // a newer spread took its place, and is over
		return
	}
	slots := p.next(s.world.Forest, cmp.Or(s.settings.SpreadStep, spreadStep))
	isAsked := p.seeking && slices.ContainsFunc(slots, s.asksFor(source))
	if !p.seeking {
		s.queueSpread(p, slots)
	}
	if !p.isOver() && !isAsked {
		s.queueKeys(spreadKey(source))
		return
	}
	delete(s.spreads, source)
	switch {
	case isAsked:
		s.requestSource(source)
	case p.seeking:
		s.finishSource(source, false)
	default:
		s.emitFanout(source.Kind, s.measured.fanouts.endRecording(source))
	}
}

// queueSpread queues slots that a source concerns.
func (s *State) queueSpread(p *spread, slots []copies.Slot) {
	if known := s.world.Sources.At(p.source); p.wasRead && known != nil && known.IsUnread() {
		// The read has shown another object, or none: the watch is behind, and its next event queues these slots. If they were queued now, they
		// would ask for the same read again and again.
		slots = slices.DeleteFunc(slots, s.asksFor(p.source))
	}
	s.measured.fanouts.record(p.source, slots, s.world.Plan)
	s.queueKeys(slotKeys(slots)...)
}
