package copyengine

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// spreadStep is how many namespaces one step of a spread looks at, unless Settings say otherwise: the runner holds its
// lock for one step, however many namespaces there are.
const spreadStep = 32

// spread walks in steps over the slots that a source concerns: a slot in every namespace below the source, and the slot
// of every copy of it.
type spread struct {
	source copies.Slot
	// seeking reports that the source was not read yet: the spread looks for a slot whose plan asks for the body, and
	// queues nothing.
	seeking bool
	// wasRead reports that a read of the source has just ended.
	wasRead bool

	below   []string // namespaces below the source that are next; those below them follow
	copied  []string // namespaces that have a copy; they follow after below, unless they were in it
	visited map[string]bool
}

// newSpread returns a spread of source in the world w. begin, modulo the number of children and instances, decides
// which of these comes first, so that no namespace is always the last.
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

// takeSlots returns the slots of one step. In a step it looks at as many namespaces as parameter most says, or fewer.
// Each slot is returned once, even in a cycle of namespaces.
func (p *spread) takeSlots(f *forest.Snapshot, most int) (slots []copies.Slot) {
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

// spreads work on sources: they have them read, and queue the slots that each concerns.
type spreads struct {
	*core
	events   *events
	failures *failures
	measured *measured
	objects  *objects
	troubles *troubles
	watches  *watches
	// all holds the spreads that are not over, by source. The key of each spread waits in the queue.
	all map[copies.Slot]*spread
}

// startSource asks for a read of a source whose present version was not read yet, or for a look at a source that is
// missing. A source without copies, unless it gives rights, is read only if the plan of a slot asks for that: a spread
// finds out. If nothing is to be read, startSource queues every slot that the source concerns.
func (sp *spreads) startSource(slot copies.Slot) {
	known, k := sp.world.Sources.At(slot), sp.watches.kindOf(slot.Kind)
	switch {
	case !sp.world.SeesSource(slot): // the source is queued again when the operator sees its namespace
		sp.troubles.clearTransient(slot)
		return
	case known == nil && sp.needsLoss(slot):
		if k.resource.Resource != "" {
			sp.objects.beginSearch(slot)
			sp.emitOutput(FindLoss{Source: slot, Resource: k.resource, Mode: k.Mode})
		}
		return
	case known == nil:
	case known.Invalid != "":
		sp.events.announceSource(slot, known.UID, true, v1alpha1.ReasonInvalidSource, known.Invalid)
	case known.IsUnread() && (copies.GivesRights(slot) || sp.world.Copies.HasCopyOf(slot)):
		sp.requestSource(slot)
		return
	case known.IsUnread():
		sp.beginSpread(slot, spread{seeking: true})
		return
	}
	sp.finishSource(slot, false)
}

// needsLoss reports whether copies exist whose source is missing, and no read has looked for the source yet.
func (sp *spreads) needsLoss(slot copies.Slot) bool {
	return sp.world.Copies.HasCopyOf(slot) && sp.world.Loss(slot) == copies.Unverified
}

// requestSource asks for a read of a source. The body is needed if the source reaches a slot, if copies of it exist,
// because their size counts toward limits, and if it gives rights. The body of any other source is read when a
// namespace comes below it, or gets labels that its selector selects: then the plan of a slot asks for it.
func (sp *spreads) requestSource(slot copies.Slot) {
	if resource := sp.watches.kindOf(slot.Kind).resource; resource.Resource != "" {
		sp.emitOutput(ReadSource{Source: slot, Resource: resource})
	}
}

// asksFor returns a function that reports whether the plan of a slot asks for a read of source.
func (sp *spreads) asksFor(source copies.Slot) func(copies.Slot) bool {
	return func(slot copies.Slot) bool {
		action := sp.world.Plan(slot)
		return action.Verb == copies.Look && action.Source == source
	}
}

func (sp *spreads) takeLoss(l LossFound) {
	if !sp.objects.endSearch(l.Source) { // a watch has shown something newer
		sp.queueKeys(sourceTask(l.Source))
		return
	}
	if l.Err == nil {
		sp.world.SetLoss(l.Source, l.Loss)
	}
	sp.endSource(l.Source, l.Err, false)
}

func (sp *spreads) endSource(slot copies.Slot, err error, wasRead bool) {
	// Not found is an answer: the source has gone, and the next event of its watch shows that.
	if err != nil && !apierrors.IsNotFound(err) {
		sp.failures.retryLater(sourceTask(slot), err)
		return
	}
	sp.finishSource(slot, wasRead)
}

// finishSource begins to queue every slot that a source concerns, after everything is known of the source that can be
// known now.
func (sp *spreads) finishSource(slot copies.Slot, wasRead bool) {
	sp.troubles.clearTransient(slot)
	known := sp.world.Sources.At(slot)
	sp.troubles.recordInvalid(slot, known)
	if known != nil && known.Excluded != "" && known.Maker == copies.Labelled && known.Mode != v1alpha1.ModeNone {
		sp.events.announceSource(slot, known.UID, true, v1alpha1.ReasonSourceExcluded, known.Excluded)
	}
	sp.measured.beginRecording(slot)
	sp.beginSpread(slot, spread{wasRead: wasRead})
}

// beginSpread begins a spread, in place of one of the same source that is not over, and takes its first step. seeking
// and wasRead are those of purpose.
func (sp *spreads) beginSpread(source copies.Slot, purpose spread) {
	p := newSpread(sp.world, source, sp.now.UnixNano())
	p.seeking, p.wasRead = purpose.seeking, purpose.wasRead
	sp.all[source] = p
	sp.stepSpread(source)
}

// stepSpread takes the next step of the spread of a source, and queues the step after it.
func (sp *spreads) stepSpread(source copies.Slot) {
	p := sp.all[source]
	if p == nil { // a newer spread took its place, and is over
		return
	}
	slots := p.takeSlots(sp.world.Forest, cmp.Or(sp.settings.SpreadStep, spreadStep))
	isAsked := p.seeking && slices.ContainsFunc(slots, sp.asksFor(source))
	if !p.seeking {
		sp.queueSlots(p, slots)
	}
	if !p.isOver() && !isAsked {
		sp.queueKeys(spreadKey(source))
		return
	}
	delete(sp.all, source)
	switch {
	case isAsked:
		sp.requestSource(source)
	case p.seeking:
		sp.finishSource(source, false)
	default:
		sp.measured.endRecording(source)
	}
}

// queueSlots queues slots that a source concerns.
func (sp *spreads) queueSlots(p *spread, slots []copies.Slot) {
	if known := sp.world.Sources.At(p.source); p.wasRead && known != nil && known.IsUnread() {
		// The read has shown another object, or none: the watch is behind, and its next event queues these slots. If
		// they were queued now, they would ask for the same read again and again.
		slots = slices.DeleteFunc(slots, sp.asksFor(p.source))
	}
	sp.measured.recordSlots(p.source, slots)
	sp.queueKeys(slotKeys(slots)...)
}
