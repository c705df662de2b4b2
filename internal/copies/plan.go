// Package copies keeps copies of objects in many namespaces as their sources are. It is pure: a State takes in what has happened (Input), and says
// what is to be done (Output). A World of forest, sources and copies goes
// in, actions come out.
//
// The words of this package: a source is an object that is propagated; a copy is an object that the operator wrote from a source, and bears
// the label inherited-from. A slot is the place (kind, namespace, name) of one copy, whether or not the copy exists. An access copy is a copy
// of a RoleBinding by which the operator hands out the access of a tenant. A rail is a copy of any kind but RoleBinding, such as a quota or a
// network policy; rails keep in bounds what rights allow. A narrow kind is watched only where the operator's RBAC allows; the sight of such a
// kind says in which namespaces the operator sees its objects. A namespace is halted while its way to a root is broken, as by a missing
// parent or a cycle: nothing is given there.
package copies

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
