package propagation

import (
	"maps"
	"slices"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// trouble is what keeps a slot from being what it should be.
type trouble struct {
	reason    v1alpha1.Reason // Conflict, Rejected, or "" for what passes by itself
	from      string          // namespace of the source
	text      string          // what stands in the way, for those who are told
	tries     int
	announced bool // the owner of the source has got an Event
	silent    bool // the source is in mode create: somebody else's object satisfies it
	reading   bool // it is a source that could not be read: nothing is known of its copies either
}

func (t trouble) obstructed() bool { return t.reason == v1alpha1.ReasonConflict }

// blocked says whether an object stands where the copy should go: somebody else's, or one that is being deleted.
func (t trouble) blocked() bool { return t.obstructed() || t.text == errBeingDeleted.Error() }

// troubles are what keeps slots from being what they should be, and tell those who report it.
type troubles struct {
	queue    *queue
	timing   Timing
	snapshot func() *forest.Snapshot
	// report is told which namespaces have something new to report; it must not block, nor ask the engine.
	report func(namespaces ...string)

	mu    sync.Mutex                             // guards all below; while it is held, only snapshot and report are called
	slots map[string]map[propagate.Slot]*trouble // by namespace
	known bool                                   // everything was looked at since this replica leads, but for what is unknown
	// unknown are the slots whose first look has failed for a reason that should pass by itself, and has not yet.
	unknown map[propagate.Slot]bool
}

func newTroubles(o Options, q *queue) *troubles {
	report := o.Troubled
	if report == nil {
		report = func(...string) {}
	}
	return &troubles{queue: q, timing: o.Timing, snapshot: o.Index.Snapshot, report: report, slots: map[string]map[propagate.Slot]*trouble{}}
}

// of is the trouble of a slot; the zero value if it has none.
func (t *troubles) of(slot propagate.Slot) trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.slots[slot.Namespace][slot]; known != nil {
		return *known
	}
	return trouble{}
}

// in are the troubles in namespace; nil if there are none.
func (t *troubles) in(namespace string) map[propagate.Slot]trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all map[propagate.Slot]trouble
	for slot, known := range t.slots[namespace] {
		if all == nil {
			all = map[propagate.Slot]trouble{}
		}
		all[slot] = *known
	}
	return all
}

// note counts one more try of a slot that failed. isNew says that the reason is another one than before.
func (t *troubles) note(slot propagate.Slot, now trouble) (noted trouble, isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.slots[slot.Namespace][slot]
	switch {
	case known != nil && known.reason != "" && now.reason == "": // what passes by itself hides nothing
	case known == nil || known.reason != now.reason:
		if isNew = true; known != nil {
			t.tellAll(known.from)
		}
		known = &now
		if t.slots[slot.Namespace] == nil {
			t.slots[slot.Namespace] = map[propagate.Slot]*trouble{}
		}
		t.slots[slot.Namespace][slot] = known
		t.tellAll(slot.Namespace, now.from)
	case known.text != now.text || known.from != now.from || known.silent != now.silent:
		t.tellAll(slot.Namespace, known.from, now.from)
		known.text, known.from, known.silent = now.text, now.from, now.silent
	}
	if now.reason != "" {
		t.learn(slot)
	}
	known.tries++
	return *known, isNew
}

// announce says whether the owner of the source is yet to get an Event about the trouble of a slot, and takes it for sent.
func (t *troubles) announce(slot propagate.Slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.slots[slot.Namespace][slot]
	if known == nil || known.announced {
		return false
	}
	known.announced = true
	return true
}

// clear forgets the trouble of a slot, and returns what it was.
func (t *troubles) clear(slot propagate.Slot) trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.slots[slot.Namespace][slot]
	if known == nil {
		return trouble{}
	}
	t.drop(slot)
	t.tellAll(slot.Namespace, known.from)
	return *known
}

// clearTransient forgets the failures of a source that pass by themselves, but not what keeps a copy from standing in its
// place.
func (t *troubles) clearTransient(slot propagate.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.slots[slot.Namespace][slot]; known != nil && known.reason == "" {
		t.drop(slot)
	}
}

// drop forgets a slot. The caller holds the lock.
func (t *troubles) drop(slot propagate.Slot) {
	t.learn(slot)
	if delete(t.slots[slot.Namespace], slot); len(t.slots[slot.Namespace]) == 0 {
		delete(t.slots, slot.Namespace)
	}
}

// retryLater tries a key again that failed without being refused: no connection, 429, 5xx.
func (t *troubles) retryLater(k key, err error) {
	noted, isNew := t.note(k.slot, trouble{reading: k.what == aSource})
	if isNew {
		ctrl.Log.WithName("propagation").Error(err, "a request failed; it is tried again", "slot", k.slot.String())
	}
	t.queue.AddAfter(k, copying.TransientBackoff(t.timing.TransientMin, t.timing.TransientMax, noted.tries, err))
}

// count are the numbers of slots of each kind in trouble, by reason, without the silent ones.
func (t *troubles) count() map[kindReason]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[kindReason]int{}
	for _, here := range t.slots {
		for slot, known := range here {
			if !known.silent {
				all[kindReason{slot.Kind, known.reason}]++
			}
		}
	}
	return all
}

// mostUnknown bounds the slots that are set aside as unknown. Where more can't be looked at, the API server is down, and nothing is
// known of anything.
const mostUnknown = 1000

// isKnown says whether everything that a report on a namespace depends on was looked at since this replica leads, or since the
// configuration changed: what is in it and below it, and the sources above it.
func (t *troubles) isKnown(namespace string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known || len(t.unknown) == 0 {
		return t.known
	}
	s := t.snapshot()
	above, _ := s.Sources(namespace)
	for slot, reading := range t.unknown {
		if slot.Namespace == namespace || slices.Contains(s.Place(slot.Namespace).Path, namespace) || reading && slices.Contains(above.Names, slot.Namespace) {
			return false
		}
	}
	return true
}

// setKnown tells of all troubles, of what waits besides, and those who may have told of some before the start. What is tried again
// for a reason that passes by itself is set aside: one slot that is never answered must not hide what is known of all others.
func (t *troubles) setKnown(waiting []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known {
		return
	}
	unknown := t.retrying()
	if len(unknown) > mostUnknown {
		return
	}
	t.known, t.unknown = true, unknown
	t.tellAll(slices.Collect(maps.Keys(t.slots))...)
	t.tellAll(waiting...)
	t.tellReporting()
}

// tellEverywhere says that there is something new to report in every namespace that reports.
func (t *troubles) tellEverywhere() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known {
		t.tellReporting()
	}
}

// tellAround says that there is something new to report in a namespace, in those above it and in those below it.
func (t *troubles) tellAround(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known {
		return
	}
	s := t.snapshot()
	t.tellAbove(s, namespace)
	t.report(slices.Collect(s.Below(namespace))...)
}

// tellReporting tells every namespace with a HierarchyConfiguration. The caller holds the lock.
func (t *troubles) tellReporting() {
	s := t.snapshot()
	for name := range s.All() {
		if s.Hierarchy(name) != nil {
			t.report(name)
		}
	}
}

// retrying are the slots that are tried again for a reason that passes by itself; true for sources. The caller holds the lock.
func (t *troubles) retrying() map[propagate.Slot]bool {
	all := map[propagate.Slot]bool{}
	for _, here := range t.slots {
		for slot, known := range here {
			if known.reason == "" && known.text == "" { // what is being deleted may be so for ever
				all[slot] = known.reading
			}
		}
	}
	return all
}

// learn takes a slot for looked at, and tells those who could not report because of it. The caller holds the lock.
func (t *troubles) learn(slot propagate.Slot) {
	reading, was := t.unknown[slot]
	if !was {
		return
	}
	delete(t.unknown, slot)
	t.tellAll(slot.Namespace)
	if reading {
		for below := range t.snapshot().Below(slot.Namespace) {
			t.report(below)
		}
	}
}

// reset forgets all troubles.
func (t *troubles) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.unknown, t.slots = false, nil, map[string]map[propagate.Slot]*trouble{}
}

// tell says that these namespaces, and those above them, have something new to report.
func (t *troubles) tell(namespaces ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellAll(namespaces...)
}

// tellAll does what tell does. The caller holds the lock.
func (t *troubles) tellAll(namespaces ...string) {
	for _, name := range namespaces {
		if name != "" {
			t.tellAbove(t.snapshot(), name)
		}
	}
}

// tellAbove tells a namespace and those above it in that forest. The caller holds the lock.
func (t *troubles) tellAbove(s *forest.Snapshot, name string) {
	if t.known {
		t.report(name)
		t.report(s.Place(name).Path...)
	}
}

// setForest tells those above namespaces with troubles, before and after a change, and forgets what was wrong in one that
// is gone.
func (t *troubles) setForest(c view.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, namespace := range c.Namespaces {
		if t.slots[namespace] == nil {
			continue
		}
		if c.New.Namespace(namespace) == nil {
			for slot, known := range t.slots[namespace] {
				t.learn(slot)
				t.tellAll(known.from)
			}
			delete(t.slots, namespace)
		}
		for _, s := range []*forest.Snapshot{c.Old, c.New} {
			t.tellAbove(s, namespace)
		}
	}
}
