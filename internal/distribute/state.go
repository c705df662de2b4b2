package distribute

import (
	"fmt"
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// State is what the operator knows of all ResourceDistributions and their copies, and decides what is to be done. It makes no requests
// and has no lock, no goroutine and no clock. The runner (controllers/distribution) calls Apply, one Input after the other, and carries
// out the Outputs. A standby replica applies the same Inputs, and discards the Outputs.
type State struct {
	options Options
	forest  *forest.Snapshot
	runs    map[string]*run // by the name of the ResourceDistribution
	copies  *copyTable
	kinds   map[schema.GroupKind]*watchedKind
	repairs *copies.Repairs
	failed  copies.FailedRequests

	served   bool      // the CRD of ResourceDistributions exists, or the watch has just begun and does not know yet
	servedAt time.Time // when the CRD was first seen, or the watch began
	listed   bool      // all ResourceDistributions are known: nothing is written before
	leading  bool

	now time.Time // of the Input that is being applied
	out []Output  // the Outputs of that Input
}

// Options are the settings of a State.
type Options struct {
	Settings
	// Covered reports whether a kind's propagation has mode All, which makes every object of the kind in a tree a source.
	Covered func(schema.GroupKind) bool
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

// watchedKind is a kind that may be distributed, and what the watch of its copies has shown.
type watchedKind struct {
	schema.GroupVersionKind
	resource schema.GroupVersionResource // as it is served; empty before it was served once
	state    copies.KindState
	failure  error // why the copies were not listed, as the watch has reported last; nil if it has reported no error
}

// NewState returns a State that knows the forest f, and no objects.
func NewState(f *forest.Snapshot, o Options) *State {
	s := &State{options: o, forest: f, runs: map[string]*run{}, kinds: map[schema.GroupKind]*watchedKind{}, repairs: copies.NewRepairs()}
	s.copies = newCopyTable(s.nameOf)
	for _, gvk := range o.Kinds {
		s.kinds[gvk.GroupKind()] = &watchedKind{GroupVersionKind: gvk, state: copies.KindSyncing}
	}
	return s
}

// nameOf returns the forest's own string for a namespace's name, so that equal names share memory; the given string if the forest lacks it.
func (s *State) nameOf(namespace string) string {
	if n := s.forest.Namespace(namespace); n != nil {
		return n.Name
	}
	return namespace
}

// Apply takes in one Input, and returns what is to be done because of it. The Outputs are to be carried out in their order.
func (s *State) Apply(now time.Time, input Input) []Output {
	s.now = now
	input.applyTo(s)
	out := s.out
	s.out = nil
	return out
}

func (s *State) emitOutput(one Output) { s.out = append(s.out, one) }

// queue queues keys if this replica leads. Until a worker takes them their targets are open: no review queues them a second time.
func (s *State) queue(keys ...Key) {
	if !s.leading || len(keys) == 0 {
		return
	}
	for _, key := range keys {
		if r := s.runs[key.Distribution]; r != nil && key.Namespace != "" {
			r.open[key.Namespace] = true
		}
	}
	s.emitOutput(Queue{Keys: keys})
}

// queueAfter queues a key when some time has passed.
func (s *State) queueAfter(key Key, delay time.Duration) {
	s.emitOutput(Queue{Keys: []Key{key}, After: max(delay, 1)})
}

func (e Elected) applyTo(s *State) {
	s.leading = true
	s.queueAll()
}

// queueAll queues the reviews of all distributions, and of deleted ones that have left copies.
func (s *State) queueAll() {
	names := s.copies.findWriters(nil)
	for name := range s.runs {
		names[name] = true
	}
	for name := range names {
		s.queue(reviewKey(name))
	}
}

func (c DefinitionChanged) applyTo(s *State) {
	if c.State == watchset.NotServed {
		if s.listed { // the CRD was deleted, and all objects with it
			DistributionsListed{}.applyTo(s)
		}
		s.served = false
		return
	}
	if !s.served && (c.State == "" || c.Resource.Resource != "") {
		s.served, s.servedAt = true, s.now
	}
}

func (l DistributionsListed) applyTo(s *State) {
	there := make(map[string]bool, len(l.All))
	for _, rd := range l.All {
		there[rd.Name] = true
		s.takeDistribution(rd)
	}
	for name, r := range s.runs {
		if !there[name] {
			s.forgetRun(r)
		}
	}
	s.listed = true // only now, so that nothing is taken for a copy of a deleted distribution
	s.queueAll()
}

func (o DistributionSeen) applyTo(s *State) { s.takeDistribution(o.ResourceDistribution) }

func (s *State) takeDistribution(rd *v1alpha1.ResourceDistribution) {
	known := s.runs[rd.Name]
	if known != nil && s.listed && known.follows(rd) {
		if known.takeStatus(rd) {
			s.queue(reviewKey(rd.Name))
		}
		return
	}
	d := Read(rd, s.options.Settings)
	if known != nil {
		s.unwantCopies(known)
	}
	if known != nil && known.UID == d.UID {
		s.takeSpec(known, d, rd.Status)
	} else {
		if known != nil {
			s.stopWatch(known)
		}
		s.runs[rd.Name] = newRun(d, rd.Status, s.now)
	}
	if d.Template != nil {
		s.copies.want(d.Template.Family(), d.Name)
	}
	s.queue(reviewKey(rd.Name))
}

func (o DistributionGone) applyTo(s *State) {
	if known := s.runs[o.Name]; known != nil && known.UID == string(o.UID) {
		s.forgetRun(known)
	}
	s.queue(reviewKey(o.Name))
}

// forgetRun removes the run of a ResourceDistribution that is gone.
func (s *State) forgetRun(r *run) {
	s.unwantCopies(r)
	s.stopWatch(r)
	delete(s.runs, r.Name)
}

// unwantCopies records that the run's present spec wants no copies any more.
func (s *State) unwantCopies(r *run) {
	if r.Template != nil {
		s.copies.unwantCopies(r.Template.Family(), r.Name)
	}
}

// follows reports whether the run has this object's UID, generation and deletion already.
func (r *run) follows(rd *v1alpha1.ResourceDistribution) bool {
	return r.UID == string(rd.UID) && r.Generation == rd.Generation && r.Deleting == (rd.DeletionTimestamp != nil)
}

// takeStatus takes the status of an object whose spec has not changed. It reports whether the status differs from the one reported last,
// which means that somebody else has written it.
func (r *run) takeStatus(rd *v1alpha1.ResourceDistribution) (changed bool) {
	r.resourceVersion = rd.ResourceVersion
	if reflect.DeepEqual(r.reported, rd.Status) {
		return false
	}
	named := r.Targets.ReadNamed(&rd.Status)
	if r.admitted != rd.Status.Admitted || !maps.Equal(r.named, named) {
		r.judged = nil
	}
	r.reported, r.admitted, r.named = rd.Status, rd.Status.Admitted, named
	return true
}

// takeSpec replaces the spec. It clears all troubles, because the API server may accept the new template. All obstacles become unexamined,
// because they were compared with the old spec.
func (s *State) takeSpec(r *run, d *Distribution, status v1alpha1.ResourceDistributionStatus) {
	if d.Problem != "" { // nothing is written, so obstacles do not matter; they are listed anew when the problem is solved
		s.stopWatch(r)
		r.obstacles, r.looked = map[string]*Obstacle{}, false
	}
	for namespace, o := range r.obstacles {
		r.obstacles[namespace] = o.unexamined()
	}
	r.Distribution, r.resourceVersion, r.reported, r.named, r.began = d, d.ResourceVersion, status, d.Named, s.now
	r.troubles = map[string]trouble{}
}

// mostPlanned is the largest number of changed namespaces that applyTo plans one by one, for each distribution. If a change of the forest
// concerns more namespaces, applyTo plans none of them, and a worker reviews every distribution.
const mostPlanned = 100

func (c ForestChanged) applyTo(s *State) {
	s.forest = c.New
	for _, r := range s.runs {
		if len(c.Namespaces) > mostPlanned {
			s.queue(reviewKey(r.Name))
			continue
		}
		s.queue(s.findAffected(r, c)...)
	}
}

// findAffected returns the keys of the namespaces whose choice or UID has changed with the forest, or whose plan has a write. If
// spec.targets names one of them, or the reason of an obstacle may have changed, the review's key is added.
func (s *State) findAffected(r *run, change ForestChanged) []Key {
	if r.Problem != "" {
		return nil
	}
	mentioned := map[string]bool{}
	for _, one := range r.Targets.Named() {
		mentioned[one] = true
	}
	var keys []Key
	for _, namespace := range change.Namespaces {
		if o := r.obstacles[namespace]; o != nil && o.Covered && change.Old.Place(namespace).InTree() != change.New.Place(namespace).InTree() {
			keys = append(keys, Key{r.Name, namespace}, reviewKey(r.Name))
			continue
		}
		old, now := change.Old.Namespace(namespace), change.New.Namespace(namespace)
		was := r.Targets.Choose(change.Old, namespace, s.options.Protected, r.named)
		is := s.planAt(r, namespace)
		same := change.Old != change.New && was == is.choice && (old == nil) == (now == nil) && (old == nil || old.UID == now.UID)
		if !same || is.Verb != Nothing {
			keys = append(keys, Key{r.Name, namespace})
		} else if now == nil || r.named.Means(change.New, namespace) {
			continue
		}
		if mentioned[namespace] {
			keys = append(keys, reviewKey(r.Name))
		}
	}
	return keys
}

func (c KindChanged) applyTo(s *State) {
	k := s.kinds[c.Kind]
	if c.Status.Resource.Resource != "" {
		k.resource = c.Status.Resource
	}
	if c.Status.Err != nil {
		k.failure = c.Status.Err
	}
	was := k.state
	if k.state = k.state.After(c.Status); k.state == was {
		return
	}
	if k.state == copies.KindDegraded {
		s.emitOutput(copies.Log{Message: s.describeUnobserved(k)})
	}
	for _, r := range s.runs {
		if r.Template != nil && r.Template.Kind.GroupKind() == c.Kind {
			s.queue(reviewKey(r.Name))
		}
	}
	for name := range s.copies.findWriters(&c.Kind) {
		if s.runs[name] == nil {
			s.queue(reviewKey(name))
		}
	}
}

// CheckSynced returns an error while the CRD is served and a list of ResourceDistributions or copies is missing. It stops waiting for a
// list after DegradedAfter.
func (s *State) CheckSynced(now time.Time) error {
	if s.served && !s.listed && now.Sub(s.servedAt) < s.options.DegradedAfter {
		return fmt.Errorf("the ResourceDistributions are not synced yet")
	}
	for gk, k := range s.kinds {
		if s.served && k.state == copies.KindSyncing {
			return fmt.Errorf("copies of %s are not synced yet", gk)
		}
	}
	return nil
}

// Counts are the numbers of one distribution for metrics.
type Counts struct {
	Distribution string
	Status       v1alpha1.ResourceDistributionStatus // as it was reported last
	Loops        int                                 // copies that somebody changes in a loop
}

// CountAll returns the numbers of all distributions.
func (s *State) CountAll(now time.Time) []Counts {
	all := make([]Counts, 0, len(s.runs))
	for name, r := range s.runs {
		one := Counts{Distribution: name, Status: r.reported}
		if r.Template != nil {
			one.Loops = s.repairs.Loops(r.Template.Slot(""), now, s.options.Timing.LoopWindow)
		}
		all = append(all, one)
	}
	return all
}
