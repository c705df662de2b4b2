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
	p := w.planner(slot)
	switch c := p.copied; {
	case c != nil && c.flags.has(terminating):
		return Action{}
	case !p.managed:
		return p.planWithdrawal()
	case !p.sees():
		return Action{}
	case kind.mode == Remove:
		if c != nil && c.binding() {
			return Action{Verb: Delete, Source: slot.At(c.from)}
		}
		return Action{}
	case c == nil || !c.flags.has(ours):
		return p.planAbsent()
	case c.flags.has(modeCreate):
		return p.planKept()
	}
	return p.planCopy()
}

// selects matches the namespace's labels; tree labels come from the forest, so that a label that is still to be written
// counts.
func (s *Source) selects(f *forest.Snapshot, namespace string) bool {
	return s.Selector == nil || s.Selector.Empty() || s.Selector.Matches(labels.Set(f.SelectableLabels(namespace)))
}
