// Package distribute plans what must be written so that every target of a ResourceDistribution has its copy, and acts
// on these plans. It is pure: it decides by the distribution, the forest of namespaces, the copies and the obstacles,
// and makes no requests. A slot is the place of one object: kind, namespace and name. A copy is the object that the
// operator writes into a target's slot; an obstacle is somebody else's object there.
//
// The State consists of parts. A part owns its fields; whoever wants them asks it. A part knows only the parts above it
// in this list:
//
//	core       options, forest, time, what waits in the queue, and the Outputs of the Input that is being applied
//	kinds      the kinds that may be distributed, and the states of their watches
//	copyTable  the copies of all distributions
//	events     the Events on distributions and obstacles
//	obstacles  of one distribution: the objects in its way, and the watch that shows them
//	report     of one distribution: its status as it was read or written last
//	gate       of one distribution: whether anything may be written, and what the status must record before
//	troubles   of one distribution: the targets that cannot be written
//	runs       the ResourceDistributions that exist
//	plans      what is to be done in each namespace
//	outcomes   what follows from writes that have succeeded or failed
//	left       hand back or unlock the copies of deleted distributions
//	answers    take what requests have shown into the parts above
//	reports    have statuses written
//	reviews    plan all targets of a distribution together
//	writes     ask for the requests for one target
//
// Why these rules:
//
//   - spec.resource is the only source: to distribute an object that exists would let a user read another namespace's Secret. A conflict
//     does not refuse a ResourceDistribution, so that `kubectl apply -f dir/` works in any order; and it never blocks updates, because any
//     tenant could then stop the rotation of a password.
//   - A name means the namespace that had it when the targets were written. Otherwise whoever creates a namespace with the name of a
//     deleted one would read the Secret, and a distribution would write where its author has no right any more. status.named has the UIDs
//     and that time; a status without it, from an earlier version, means the namespaces that have the names now. While no operator runs,
//     nothing is recorded. The operator's own creations count by what asked for them: an LNamespace without annotation creator is a
//     cluster admin's.
//   - The status has no list of all namespaces, and stays below 64 KiB: with a Secret of 1 MiB and a status of 180 KiB etcd refuses the
//     object. It is written at most every 2 s while work continues (0.3 s while Ready has another reason than Progressing), but at once
//     where it must record something before copies are written.
//   - There is no finalizer: ownerReferences remove copies while no operator runs, and copies under Orphan have none, so that no data are
//     lost with the ResourceDistribution or its CRD.
//   - A copy has no time of its last write: it would cost a write for each copy whose content has not changed. managedFields has it.
//   - No overlay requires allNamespaces: true, because one cluster would refuse a file that another accepts; a Warning counts them.
//   - Policy and webhook check no update that leaves the spec: the garbage collector could not remove finalizers, and a deleted object
//     would exist for ever. The rights in each namespace are the webhook's matter, because CEL allows two authorizer checks an expression.
//   - Obstacles are found by one list of metadata of all namespaces, by name and label distributed-by, and watched so while a conflict
//     lasts. Apart from that, no unrelated objects are in memory.
//   - Defaults that the server adds never count as a difference, stringData is merged into data before hashing, and an absent Secret type
//     is Opaque. Under Revert a copy is read once after each write, because managedFields name the operator as the writer of what
//     mutating admission changed.
package distribute

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// State is what the operator knows of all ResourceDistributions and their copies, and decides what is to be done. It
// makes no requests and has no lock, no goroutine and no clock. The runner (controllers/distribution) calls Apply, one
// Input after the other, and carries out the Outputs. A standby replica applies the same Inputs, and discards the
// Outputs.
type State struct {
	*core
	copies   *copyTable
	kinds    *kinds
	outcomes *outcomes
	plans    *plans
	reviews  *reviews
	runs     *runs
	writes   *writes

	served   bool      // the CRD of ResourceDistributions exists, or the watch has just begun and does not know yet
	servedAt time.Time // when the CRD was first seen, or the watch began
}

// Options are the settings of a State.
type Options struct {
	Settings
	// Covered reports whether a kind's propagation has mode All, which makes every object of the kind in a tree a
	// source.
	Covered func(schema.GroupKind) bool
	// AwaitsShare reports whether the namespace's share of a budget is not in force yet, so that new copies must wait, for as long as it
	// reports so. Nil: no budgets.
	AwaitsShare func(namespace string) bool
	// RetryMin and RetryMax bound the back-off of copies that the API server refuses.
	RetryMin, RetryMax time.Duration
	// DegradedAfter is how long readiness waits for a complete list of ResourceDistributions, or of copies.
	DegradedAfter time.Duration
	Timing        Timing
}

// Timing holds time constants, so that tests can shrink them.
type Timing struct {
	// Pace is the least time between two writes of a status while work goes on, Last when it has ended.
	Pace, Last time.Duration
	// TransientMin and TransientMax bound the back-off of requests that fail without being refused.
	TransientMin, TransientMax time.Duration
	// Write bounds one write, and List the request that lists obstacles.
	Write, List time.Duration
	// LoopWindow is how long a copy that somebody changes in a loop is left as it is.
	LoopWindow time.Duration
	// Tick is the time between two checks of whether a scrub is due.
	Tick time.Duration
}

// DefaultTiming returns what production uses.
func DefaultTiming() Timing {
	return Timing{
		Pace: 2 * time.Second, Last: 300 * time.Millisecond,
		TransientMin: 200 * time.Millisecond, TransientMax: 30 * time.Second,
		Write: 30 * time.Second, List: 60 * time.Second, LoopWindow: 10 * time.Minute, Tick: time.Second,
	}
}

// NewState returns a State that knows the forest f, and no objects.
func NewState(f *forest.Snapshot, o Options) *State {
	c := &core{options: o, forest: f, work: map[string]*openWork{}}
	k, table, e := newKinds(c), newCopyTable(c.nameOf), &events{c}
	rs := &runs{core: c, kinds: k, copies: table, byName: map[string]*run{}}
	p := &plans{core: c, copies: table}
	out := &outcomes{core: c, events: e, repairs: copies.NewRepairs()}
	left := &leftCopies{core: c, copies: table, kinds: k}
	found := &answers{core: c, copies: table, runs: rs}
	return &State{
		core: c, copies: table, kinds: k, outcomes: out, plans: p, runs: rs,
		reviews: &reviews{core: c, left: left, kinds: k, outcomes: out, plans: p, reports: &reports{core: c, events: e}, runs: rs},
		writes:  &writes{core: c, answers: found, copies: table, left: left, kinds: k, outcomes: out, plans: p, runs: rs},
	}
}

// Apply takes in one Input, and returns what is to be done because of it. The Outputs are to be carried out in their
// order.
func (s *State) Apply(now time.Time, input Input) []Output {
	s.now = now
	input.applyTo(s)
	return s.takeOutputs()
}

func (Elected) applyTo(s *State) {
	s.leading = true
	s.runs.queueAll()
}

func (k Started) applyTo(s *State) {
	if k.Namespace == "" {
		s.reviews.startReview(k.Distribution)
		return
	}
	s.writes.startTarget(k.Key)
}

func (c DefinitionChanged) applyTo(s *State) {
	if c.State == watchset.NotServed {
		if s.listed { // the CRD was deleted, and all objects with it
			s.runs.takeAll(nil)
		}
		s.served = false
		return
	}
	if !s.served && (c.State == "" || c.Resource.Resource != "") {
		s.served, s.servedAt = true, s.now
	}
}

func (l DistributionsListed) applyTo(s *State) { s.runs.takeAll(l.All) }

func (o DistributionSeen) applyTo(s *State) {
	r := s.runs.at(o.Name)
	if r != nil && r.UID == string(o.UID) && forest.IsNewer(r.report.resourceVersion, o.ResourceVersion) {
		return // the answer to the operator's own write of the status came first
	}
	s.runs.takeDistribution(o.ResourceDistribution)
}

func (o DistributionGone) applyTo(s *State) {
	s.runs.dropRun(o.Name, string(o.UID))
	s.queueKeys(reviewKey(o.Name))
}

func (c ForestChanged) applyTo(s *State) {
	for _, name := range c.Namespaces {
		if forest.HasEnded(s.forest, c.New, name) {
			s.copies.forgetNamespace(name)
		}
	}
	s.forest = c.New
	gone := slices.DeleteFunc(slices.Clone(c.Namespaces), func(name string) bool { return c.New.Namespace(name) != nil })
	for r := range s.runs.all() {
		for _, namespace := range gone {
			r.troubles.forgetNamespace(namespace)
		}
		s.plans.queueChange(r, c)
	}
}

func (c KindChanged) applyTo(s *State) {
	if s.kinds.takeChange(c) {
		s.runs.queueKind(c)
	}
}

func (l CopiesListed) applyTo(s *State) { s.runs.queueVanished(s.copies.replaceCopies(l)) }

func (o CopySeen) applyTo(s *State) { s.queueKeys(s.copies.takeCopy(o.Kind, o.Object)...) }

func (o CopyGone) applyTo(s *State) { s.runs.queueVanished(s.copies.removeCopy(o.Kind, o.Object)) }

func (l ObstaclesListed) applyTo(s *State) {
	if r := s.runs.findWatching(l.Watch); r != nil {
		s.queueKeys(append(r.obstacles.takeWatched(r.Distribution, l), reviewKey(r.Name))...)
	}
}

func (o ObstacleSeen) applyTo(s *State) {
	if r := s.runs.findWatching(o.Watch); r != nil {
		r.obstacles.takeSeen(o.Watch.Kind, o.Object)
		s.queueKeys(Key{r.Name, o.Object.Namespace}, reviewKey(r.Name))
	}
}

func (o ObstacleGone) applyTo(s *State) {
	if r := s.runs.findWatching(o.Watch); r != nil {
		r.obstacles.takeGone(o.Object)
		s.queueKeys(Key{r.Name, o.Object.Namespace}, reviewKey(r.Name))
	}
}

func (c ObstacleWatchChanged) applyTo(s *State) {
	if r := s.runs.findWatching(c.Watch); r != nil {
		r.obstacles.takeState(c.Status)
		s.queueKeys(reviewKey(r.Name))
	}
}

func (f ObstaclesFound) applyTo(s *State) { s.reviews.endLook(f) }

func (w StatusWritten) applyTo(s *State) { s.reviews.endReport(w) }

func (c CopyWritten) applyTo(s *State) { s.writes.endWrite(c) }

func (d DriftFound) applyTo(s *State) {
	of, known := s.FindUnchanged(d.Slot, d.UID, d.ResourceVersion)
	if known == nil {
		return
	}
	known.Known, known.Drifted = true, true
	s.copies.Put(d.Slot, known)
	s.queueKeys(Key{of.Name, d.Slot.Namespace})
}

// ObstacleWatches returns the watches of obstacles that must exist now.
func (s *State) ObstacleWatches() map[*ObstacleWatch]bool {
	all := map[*ObstacleWatch]bool{}
	for r := range s.runs.all() {
		if w := r.obstacles.currentWatch(); w != nil {
			all[w] = true
		}
	}
	return all
}

// CheckSynced returns an error while the CRD is served and a list of ResourceDistributions or copies is missing. It
// stops waiting for a list after DegradedAfter.
func (s *State) CheckSynced(now time.Time) error {
	switch {
	case !s.served:
		return nil
	case !s.listed && now.Sub(s.servedAt) < s.options.DegradedAfter:
		return fmt.Errorf("the ResourceDistributions are not synced yet")
	}
	return s.kinds.checkSynced()
}

// Counts are the numbers of one distribution for metrics.
type Counts struct {
	Distribution string
	Status       v1alpha1.ResourceDistributionStatus // as it was reported last
	Loops        int                                 // copies that somebody changes in a loop
}

// CountAll returns the numbers of all distributions.
func (s *State) CountAll(now time.Time) []Counts {
	var all []Counts
	for r := range s.runs.all() {
		all = append(all, Counts{Distribution: r.Name, Status: r.report.lastStatus(), Loops: s.outcomes.countLoops(r, now)})
	}
	return all
}

// FindScrubParts returns what a pass of the scrub reads: the kinds with locked copies, which are the copies that only
// the operator may change.
func (s *State) FindScrubParts() []copies.ScrubPart {
	return s.kinds.findScrubParts(func(gk schema.GroupKind) bool {
		for r := range s.runs.all() {
			if r.Problem == "" && r.Drift == v1alpha1.DriftRevert && r.Template.Kind.GroupKind() == gk {
				return true
			}
		}
		return false
	})
}

// FindUnchanged returns the copy in slot, and its distribution. It returns nil for both unless driftPolicy is Revert,
// and the copy still has this UID and resourceVersion, has the template's content, and is not known to have drifted.
func (s *State) FindUnchanged(slot copies.Slot, uid, resourceVersion string) (*Distribution, *Copy) {
	known := s.copies.atUID(slot, uid)
	if known == nil || known.ResourceVersion != resourceVersion || known.Drifted {
		return nil, nil
	}
	r := s.runs.at(known.By)
	if r == nil || r.Problem != "" || r.Drift != v1alpha1.DriftRevert || r.Template.Slot(slot.Namespace) != slot ||
		known.Content != r.Template.Content {
		return nil, nil
	}
	return r.Distribution, known
}
