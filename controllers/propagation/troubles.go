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
	reason    v1alpha1.Reason // Conflict, Rejected, or "" for a failure that passes by itself
	from      string          // namespace of the source
	text      string          // what stands in the way, for conditions and Events
	tries     int
	announced bool // the owner of the source has got an Event
	silent    bool // the source is in mode create: somebody else's object satisfies it
	reading   bool // the slot is that of a source that could not be read: nothing is known of its copies either
}

func (t trouble) obstructed() bool { return t.reason == v1alpha1.ReasonConflict }

// blocked says whether an object stands where the copy should go: somebody else's, or one that is being deleted.
func (t trouble) blocked() bool { return t.obstructed() || t.text == errBeingDeleted.Error() }

// troubles keep the trouble of each slot that has one, and say which namespaces have something new to report.
type troubles struct {
	queue    *queue
	timing   Timing
	snapshot func() *forest.Snapshot
	// report is called with the namespaces that have something new to report; it must not block, nor call the engine.
	report func(namespaces ...string)

	mu    sync.Mutex                             // guards all below; while it is held, only snapshot and report are called
	slots map[string]map[propagate.Slot]*trouble // by namespace
	// invalid are the sources that can't be judged, by namespace, and why. A copy of another source may be in trouble at the same slot.
	invalid map[string]map[propagate.Slot]string
	known   bool // every slot was worked on since this replica leads, but for those in unknown
	// unknown are the slots whose first try has failed for a reason that passes by itself, and has not passed yet.
	unknown map[propagate.Slot]bool
}

func newTroubles(o Options, q *queue) *troubles {
	report := o.Troubled
	if report == nil {
		report = func(...string) {}
	}
	return &troubles{queue: q, timing: o.Timing, snapshot: o.View.Snapshot, report: report,
		slots: map[string]map[propagate.Slot]*trouble{}, invalid: map[string]map[propagate.Slot]string{}}
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
	case known != nil && known.reason != "" && now.reason == "": // a failure that passes by itself doesn't replace a trouble with a reason
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

// noteSource notes why the source at slot can't be judged, if it can't; nil means that there is no source.
func (t *troubles) noteSource(slot propagate.Slot, source *propagate.Source) {
	invalid := ""
	if source != nil {
		invalid = source.Invalid
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	here := t.invalid[slot.Namespace]
	switch {
	case here[slot] == invalid:
		return
	case invalid == "":
		if delete(here, slot); len(here) == 0 {
			delete(t.invalid, slot.Namespace)
		}
	case here == nil:
		t.invalid[slot.Namespace] = map[propagate.Slot]string{slot: invalid}
	default:
		here[slot] = invalid
	}
	t.tellAll(slot.Namespace)
}

// invalidIn returns the sources in namespace that can't be judged, and why.
func (t *troubles) invalidIn(namespace string) map[propagate.Slot]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.invalid[namespace])
}

// announce says whether no Event was sent yet about the trouble of a slot, and notes that one is sent now.
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

// clearTransient forgets the trouble at slot if it is a failure that passes by itself, as of a source that could not be read. The trouble of
// a copy that can't stand at slot has a reason, and stays.
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

// retryLater queues a key again, with a back-off, whose request has failed without being refused: no connection, 429, 5xx.
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

// mostUnknown bounds troubles.unknown. Where more slots than that are tried again, the API server is taken to be down, and nothing is known
// of any slot.
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

// setKnown notes that every slot was worked on since this replica leads, and has these namespaces reported: those with troubles, those in
// waiting, which wait for removals, and those that may report a trouble from before the start. Slots that are tried again for a reason that
// passes by itself become unknown: one slot that is never answered must not hide what is known of all others.
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

// tellReporting has every namespace with a HierarchyConfiguration reported. The caller holds the lock.
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
			if known.reason == "" && known.text == "" { // a slot with a text doesn't count: an object may be being deleted for ever
				all[slot] = known.reading
			}
		}
	}
	return all
}

// learn takes a slot off unknown, and has the namespaces reported that could not be reported because of this slot. The caller holds the lock.
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

// tellAbove has the namespace called name, and those above it in that forest, reported. The caller holds the lock.
func (t *troubles) tellAbove(s *forest.Snapshot, name string) {
	if t.known {
		t.report(name)
		t.report(s.Place(name).Path...)
	}
}

// setForest has the namespaces reported that are above a namespace with troubles after a change, or were so before, and forgets the troubles
// of namespaces that are gone.
func (t *troubles) setForest(c view.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, namespace := range c.Namespaces {
		if c.New.Namespace(namespace) == nil {
			delete(t.invalid, namespace)
		}
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
