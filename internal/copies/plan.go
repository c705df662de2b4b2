// Package copies has the facts about copies in many namespaces, and plans how the copies follow their sources. It is
// pure: World holds the forest, the sources and the copies, and World.Plan turns them into an Action for one slot.
// internal/copyengine acts on these plans.
//
// The parts of a World own their fields: Sources, Copies (with a tally of their numbers and sizes), Sights and
// Allotter. Rules read a source or a copy from metadata and find drift; a Body is what is written into a copy.
//
// The words of this package: a source is an object that is propagated; a copy is an object that the operator wrote from
// a source, and bears the label inherited-from. A slot is the place (kind, namespace, name) of a source or a copy,
// whether or not that object exists. An access copy is a copy of a RoleBinding by which the operator grants the access
// of a tenant. A rail is a copy of any kind but RoleBinding: some, such as quotas and network policies, limit what
// rights allow. A narrow kind is watched only where the operator's RBAC allows; the sight of such a kind is whether the
// operator sees its objects in a namespace. A namespace is halted while its way to a root is broken, for example by a
// missing parent or a cycle: the operator grants nothing there.
//
// Why the plan is as it is:
//   - An invalid value freezes copies: nobody can tell what it asks for, and a typing error must not delete 300 Secrets. A source that
//     disappears together with its namespace freezes them too, because an outage is worse than outdated copies, and a condition reports
//     them. Such a source disappears as any deleted object does: only a read of its Namespace shows the difference.
//   - An exclusion and the value none delete copies. A finalizer excludes a source, because it belongs to a program that decides about the
//     object's life, which must not reach copies. Most objects have their finalizers before they have copies, so freezing would not help.
//   - After a move, copies of the old place are deleted first, even if the new place has a source of the same kind and name. Where only the
//     wanted source changes, and the namespace of the old one is still above, the copy is replaced in place.
//   - The place in a copy's hash decides whether a copy is the operator's, so an object does not become the operator's when a user exports
//     it to another namespace or sets the label by hand. This prevents accidents; the admission policies prevent attacks. Without the
//     policies, a tenant can forge a copy in its own namespace, and harms that namespace only.
//   - The hash of a copy in mode create begins with "create:". By that, the policy copy recognizes a copy that its namespace may edit. When
//     a source changes to mode create, each copy is therefore written once.
//   - A source of a template wins over a source of the same kind and name in the root that references the template, wherever it reaches.
package copies

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Verb is what an action does.
type Verb int

// The verbs. Look means: before anything is written or deleted, read the source at Action.Source from the API server,
// and record its Loss or its content. Inspect means: read the copy, which may have been changed while no watch was
// open. Withdraw means: take away from an access copy what its source no longer grants, and add nothing.
const (
	Nothing Verb = iota
	Create
	Update
	Delete
	Look
	Inspect
	Withdraw
)

// Action is what brings one slot from its present state to the wanted one.
type Action struct {
	Verb Verb
	// Source is where the content comes from; for a Delete, where it came from.
	Source Slot
	// Hash is what the copy will carry.
	Hash Hash
	// Size is the size of the copy in bytes, counted as limits count it; 0 if it is not known.
	Size int
	// Reason is why nothing can be done although something is wanted: Conflict, WaitingForRemoval, LimitExceeded; or
	// "".
	Reason v1alpha1.Reason
}

// verdict reports whether a copy of a source is wanted at a slot.
type verdict int

const (
	unwanted verdict = iota
	wanted
	frozen // a source above is unread, being deleted or can't be judged: until that ends, no source above causes a write or deletion here
)

// Plan describes what to do at slot now. After each action that is done, Plan describes the next one, and finally
// returns Nothing. The rules stand in their order: the first that applies decides.
func (w *World) Plan(slot Slot) Action {
	kind, known := w.kinds[slot.Kind]
	if !known || !kind.synced {
		return Action{}
	}
	p := w.newPlanner(slot)
	switch c := p.copied; {
	// Nothing can be written in the place of an object that is going. A watch shows its end, and the slot is planned
	// anew.
	case c != nil && c.flags.has(terminating):
		return Action{}
	// Rights end also where the operator sees no sources, so this comes before the question of what it sees.
	case !p.managed:
		return p.planWithdrawal()
	// What is not seen is neither there nor missing: all rules below would judge by half of the facts.
	case !p.seesFacts():
		return Action{}
	// The mode of the kind counts more than any source, because the admin has taken the kind out.
	case kind.mode == Remove:
		if c != nil && c.isBinding() {
			return Action{Verb: Delete, Source: slot.At(c.from)}
		}
		return Action{}
	// An object that is not the operator's is an obstacle, whatever label it has.
	case c == nil || !c.flags.has(ours):
		return p.planAbsent()
	// A copy in mode create belongs to its namespace: what follows from its source's content must not touch it.
	case c.flags.has(modeCreate):
		return p.planKept()
	}
	return p.planCopy()
}

// selectsNamespace reports whether s selects namespace by its labels. The tree labels come from the forest f, so that a
// label that is still to be written counts.
func (s *Source) selectsNamespace(f *forest.Snapshot, namespace string) bool {
	return s.Selector == nil || s.Selector.Empty() || s.Selector.Matches(labels.Set(f.SelectableLabels(namespace)))
}

// planner plans one slot, from what the world knew when the planner was made. It changes nothing.
type planner struct {
	world *World
	slot  Slot
	// copied is the object at slot with the label inherited-from, ours or not; nil if there is none.
	copied *record
	// sources are the namespaces from which the slot's namespace gets copies. managed is false where nothing may be
	// granted: the namespace is halted, protected, terminating or gone, or the operator is about to release a namespace
	// above it.
	sources forest.Sources
	managed bool
}

func (w *World) newPlanner(slot Slot) planner {
	p := planner{world: w, slot: slot, copied: w.Copies.findRecord(slot)}
	p.sources, p.managed = w.Forest.Sources(slot.Namespace)
	return p
}

// seesFacts reports whether the operator sees all that the plan rests on: the copies in the slot's namespace, and the
// sources above.
func (p *planner) seesFacts() bool {
	return p.world.Sights.seesFacts(p.slot, p.world.Forest, p.sources.Names...)
}

// findWanted finds the source of this kind and name that reaches the slot; of several, the first in the order of
// findCandidates. The verdict is frozen if that source can't be judged, is being deleted, or was not read yet.
func (p *planner) findWanted() (Slot, *Source, verdict) {
	for at, s := range p.findCandidates() {
		switch {
		case s.Mode == v1alpha1.ModeNone && s.Invalid == "":
			continue
		// Nobody can tell what an invalid source asks for, so no source below it may take its place meanwhile. The
		// other one is being deleted alone: below a terminating namespace, all is halted.
		case s.Invalid != "" || s.Terminating:
			return at, s, frozen
		case s.Excluded != "":
			continue
		case !s.selectsNamespace(p.world.Forest, p.slot.Namespace):
			continue
		case s.Content == "": // after the rules that need no content, so that a source that reaches no slot is never read
			return at, s, frozen
		}
		return at, s, wanted
	}
	return Slot{}, nil, unwanted
}

// planAbsent plans for a slot that has no copy of ours. A copy that is not ours is another user's object, and an
// obstacle.
func (p *planner) planAbsent() Action {
	at, s, v := p.findWanted()
	if v != wanted {
		return p.planUnread(at, s)
	}
	// A source in this slot is in the way, too: it belongs to its namespace and is never overwritten (PROP-W1).
	if p.copied != nil || p.world.Sources.At(p.slot) != nil {
		if s.Mode == v1alpha1.ModeCreate {
			return Action{} // in mode create, any object of that name will do
		}
		return Action{Source: at, Reason: v1alpha1.ReasonConflict}
	}
	return p.planWrite(Create, at, s)
}

// planKept plans for a copy in mode create: its content belongs to its namespace.
func (p *planner) planKept() Action {
	at, s, v := p.findWanted()
	switch {
	// Even what belongs to the namespace must not grant another Role than its author meant. Of what came from elsewhere, this source does not
	// know the Role.
	case s != nil && s.Mode == v1alpha1.ModeCreate && s.Role != "" && at.Namespace == p.copied.from && p.copied.content != Unwritten &&
		!p.hasRole(at, s.Role):
		return Action{Verb: Delete, Source: at}
	// The source asks for no more than an object of this name, whatever a user has made of it (PROP-C2).
	case s != nil && s.Mode == v1alpha1.ModeCreate:
		return Action{}
	// A copy in mode create outlives its source (PROP-C3).
	case v != wanted:
		return p.planUnread(at, s)
	case at.Namespace != p.copied.from: // a source in mode update makes its own copies follow it, and nobody else's
		return Action{Source: at, Reason: v1alpha1.ReasonConflict}
	}
	return p.planWrite(Update, at, s)
}

// planCopy plans for a copy in mode update.
func (p *planner) planCopy() Action {
	c := p.copied
	from := p.slot.At(c.from)
	// A copy from a namespace that is no longer above goes first: it may grant or allow what the new place does not.
	if !p.sources.Has(c.from) {
		// While a template is missing or in a cycle, the copies that may have come from it stay (PROP-T6, PROP-T8).
		if p.sources.Frozen(c.from) {
			return Action{}
		}
		return Action{Verb: Delete, Source: from}
	}
	at, s, v := p.findWanted()
	switch {
	case v == frozen:
		return p.planUnread(at, s)
	case v == unwanted:
		return p.planRemoval(from)
	// Another source takes over only after a live read has shown that the old one is gone: the watch may be behind.
	case at.Namespace != c.from && p.world.Sources.At(from) == nil && p.world.Loss(from) != Confirmed:
		return p.planRemoval(from)
	}
	// Before any update: while the Role is missing or another one, this binding must not exist at all (PROP-I13), nor while its source is in
	// mode create, whose copies are never checked again (PROP-I18).
	if s.Role != "" && (s.Mode == v1alpha1.ModeCreate || !p.hasRole(at, s.Role)) {
		return Action{Verb: Delete, Source: from}
	}
	other := at.Namespace != c.from || s.Mode != c.mode() || s.Content != c.content
	switch {
	case other || c.flags.has(drifted) || c.digest == 0 && c.flags.has(marked):
		return p.planWrite(Update, at, s)
	// After a start nothing is known of who wrote last. Only what metadata make doubtful is read, so that a restart
	// costs no reads.
	case c.digest == 0 && (c.flags.has(foreign) || c.meta != s.Meta):
		return p.planWrite(Inspect, at, s)
	}
	return Action{}
}

// planUnread plans for a slot to which source s, whose slot is at, is not copied now. The action is Look if s was not
// read yet, otherwise Nothing. s may be nil.
func (p *planner) planUnread(at Slot, s *Source) Action {
	if s == nil || !s.IsUnread() {
		return Action{}
	}
	return Action{Verb: Look, Source: at}
}

// planRemoval plans for a copy whose source, at the slot from, is missing or no longer asks for it. A missing source is
// looked for by a live read first: the watch may be behind, or the whole namespace of the source may be terminating.
func (p *planner) planRemoval(from Slot) Action {
	// The source exists, so the watch itself has shown that it no longer asks for this copy: no read is needed.
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

// planWrite returns the action verb (Create, Update or Inspect) for source s, whose slot is at. If copies from
// namespaces that are no longer above must be deleted first, or limits hold s back, the action has a Reason in place of
// the verb.
func (p *planner) planWrite(verb Verb, at Slot, s *Source) Action {
	// The last copy of the old place is deleted before the first one of the new place is written (PROP-V1).
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
	return Action{Verb: verb, Source: at, Hash: Hash{s.Mode, PlaceOf(p.slot, at.Namespace), s.Content}, Size: s.Size}
}

// waitsForSource reports whether the source that reaches the slot is known, but was not read yet.
func (p *planner) waitsForSource() bool {
	kind := p.world.kinds[p.slot.Kind]
	if !p.managed || !kind.synced || kind.mode == Remove || !p.seesFacts() {
		return false
	}
	_, s, v := p.findWanted()
	return v == frozen && s.IsUnread()
}

// Maker is what makes an object a source of copies. The planner treats all sources alike: Rules.SourceOf decides which
// objects are sources, and findCandidates which of several comes first.
type Maker int8

// The makers.
const (
	Labelled Maker = iota // the object's owner set the label propagate
	Covered               // the object's kind is in mode All
)

// findCandidates yields the sources that may be wanted at the slot, each with its own slot, in the order of precedence:
// those in the templates first, then those in the ancestors, the root first.
func (p *planner) findCandidates() iter.Seq2[Slot, *Source] {
	return func(yield func(Slot, *Source) bool) {
		for _, from := range p.sources.Names {
			at := p.slot.At(from)
			if s := p.world.Sources.At(at); s != nil && !yield(at, s) {
				return
			}
		}
	}
}

// A RoleBinding that names a Role means another Role in each namespace. When a user writes a source that does so, the
// API server checks that the user holds the rights of the Role beside the source. The operator may bind every Role, so
// the API server does not check what the operator writes. That is why a copy of such a binding stays only as long as
// the copy of that very Role. Otherwise the copied binding would grant the next Role of that name, which a more
// powerful user may create there.

// RoleKind is the kind Role.
var RoleKind = schema.GroupKind{Group: RoleBindingKind.Group, Kind: "Role"}

// hasRole reports whether the Role called name in the slot's namespace is the same as the one beside the RoleBinding at
// source: a copy of that Role, or both are copies of one Role. A copy counts only if no user may change it (see
// originOfCopy). Where the operator does not see Roles, hasRole reports true, and the live read before each write
// decides alone.
func (p *planner) hasRole(source Slot, name string) bool {
	role := Slot{Kind: RoleKind, Namespace: p.slot.Namespace, Name: name}
	if !p.world.kinds[RoleKind].synced || !p.world.Sights.seesFacts(role, p.world.Forest, source.Namespace) {
		return true
	}
	origin := p.world.originOfCopy(role)
	return origin != "" && (origin == source.Namespace || origin == p.world.originOfCopy(role.At(source.Namespace)))
}

// originOfCopy returns the namespace of the source of the copy at slot, if only the operator may change that copy; ""
// if there is none. A copy in mode create counts if its source is in mode update by now, because the copy then follows
// its source.
func (w *World) originOfCopy(slot Slot) string {
	c := w.Copies.findRecord(slot)
	if c == nil || !c.flags.has(ours) || c.flags.has(terminating) {
		return ""
	}
	if s := w.Sources.At(slot.At(c.from)); !c.isBinding() && (s == nil || s.Mode != v1alpha1.ModeUpdate) {
		return ""
	}
	return c.from
}

// BindingsTo returns the slots of the copied RoleBindings, in the namespace of the Role at slot, that name this Role.
func (w *World) BindingsTo(role Slot) []Slot {
	if role.Kind != RoleKind {
		return nil
	}
	var bindings []Slot
	for _, slot := range w.Copies.In(RoleBindingKind, role.Namespace) {
		if s := w.Sources.At(slot.At(w.Copies.findRecord(slot).from)); s != nil && s.Role == role.Name {
			bindings = append(bindings, slot)
		}
	}
	return bindings
}
