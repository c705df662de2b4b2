package propagation

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// fanouts measure how long changes of sources take: from the event to the last answer. Not safe for concurrent use.
type fanouts struct {
	began map[propagate.Slot]time.Time // by source: when its event came, until its slots are planned
	under map[family]map[string]*fanout
}

// family are all objects of one kind and name.
type family struct {
	kind schema.GroupKind
	name string
}

// fanout is one event of a source, until all writes that follow from it are answered.
type fanout struct {
	since time.Time
	verb  string
	left  map[string]bool // namespaces in which something is still to be written
}

func newFanouts() fanouts {
	return fanouts{began: map[propagate.Slot]time.Time{}, under: map[family]map[string]*fanout{}}
}

var verbs = map[propagate.Verb]string{
	propagate.Create: http.MethodPost, propagate.Update: http.MethodPut, propagate.Delete: http.MethodDelete,
}

// begin notes when a source had an event.
func (f fanouts) begin(source propagate.Slot, now time.Time) { f.began[source] = now }

// spread notes which of slots are to be written because of the source's event. A newer event of a source takes the place of an older one that
// is not complete. plan says what a slot needs now.
func (f fanouts) spread(source propagate.Slot, slots []propagate.Slot, plan func(propagate.Slot) propagate.Action) {
	since, ok := f.began[source]
	if !ok {
		return
	}
	delete(f.began, source)
	way := &fanout{since: since, left: map[string]bool{}}
	for _, slot := range slots {
		if verb, writes := verbs[plan(slot).Verb]; writes {
			way.verb = verb
			way.left[slot.Namespace] = true
		}
	}
	of := family{source.Kind, source.Name}
	if len(way.left) == 0 {
		return
	}
	if f.under[of] == nil {
		f.under[of] = map[string]*fanout{}
	}
	f.under[of][source.Namespace] = way
}

// answered takes a slot off all fan-outs, and returns those that are complete now.
func (f fanouts) answered(slot propagate.Slot) (ended []*fanout) {
	of := family{slot.Kind, slot.Name}
	for namespace, way := range f.under[of] {
		if delete(way.left, slot.Namespace); len(way.left) == 0 {
			ended = append(ended, way)
			delete(f.under[of], namespace)
		}
	}
	if len(f.under[of]) == 0 {
		delete(f.under, of)
	}
	return ended
}

// measure times fan-outs and moves, for metrics.
type measure struct {
	mu      sync.Mutex // guards all below; only the plan that a caller gives is called while it is held
	fanouts fanouts
	moves   moves
}

func newMeasure() *measure { return &measure{fanouts: newFanouts(), moves: moves{}} }

// beginFanout notes when a source had an event.
func (m *measure) beginFanout(source propagate.Slot, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fanouts.begin(source, now)
}

// spreadFanout notes which of slots are to be written because of the source's event.
func (m *measure) spreadFanout(source propagate.Slot, slots []propagate.Slot, plan func(propagate.Slot) propagate.Action) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fanouts.spread(source, slots, plan)
}

// beginMoves notes namespaces that have got another parent.
func (m *measure) beginMoves(c view.Change, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moves.begin(c, now)
}

// spreadMoves notes which of slots are to be written in a namespace because of moves.
func (m *measure) spreadMoves(namespace string, slots []propagate.Slot, plan func(propagate.Slot) propagate.Action) {
	m.mu.Lock()
	ended := m.moves.looked(namespace, slots, plan)
	m.mu.Unlock()
	recordMoves(ended)
}

// endSlot notes that a slot has its answer, whatever it is, and reports the fan-outs and moves that this ends.
func (m *measure) endSlot(slot propagate.Slot) {
	m.mu.Lock()
	ended, moved := m.fanouts.answered(slot), m.moves.answered(slot)
	m.mu.Unlock()
	recordMoves(moved)
	for _, way := range ended {
		fanoutSeconds.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, way.verb).Observe(time.Since(way.since).Seconds())
	}
}
