package propagation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/text"
)

var (
	// errObstacle: somebody else's object stands where a copy should go.
	errObstacle = errors.New("an object of that name exists")
	// errBeingDeleted: what stands there is on its way out.
	errBeingDeleted = errors.New("the object is being deleted")
)

// trouble is what keeps a slot from being what it should be.
type trouble struct {
	reason v1alpha1.Reason // Conflict, Rejected, or "" for what passes by itself
	from   string          // namespace of the source
	text   string          // what stands in the way, for those who are told
	tries  int
	told   bool // the owner of the source knows
	silent bool // the source may be missing here: somebody's object will do
}

// troubles are those of all slots, by namespace.
type troubles map[string]map[propagate.Slot]*trouble

func (t troubles) of(slot propagate.Slot) *trouble { return t[slot.Namespace][slot] }

func (t troubles) put(slot propagate.Slot, one *trouble) {
	if t[slot.Namespace] == nil {
		t[slot.Namespace] = map[propagate.Slot]*trouble{}
	}
	t[slot.Namespace][slot] = one
}

// retried says whether any slot is tried again for a reason that passes by itself.
func (t troubles) retried() bool {
	for _, here := range t {
		for _, one := range here {
			if one.reason == "" {
				return true
			}
		}
	}
	return false
}

func (t troubles) drop(slot propagate.Slot) {
	if delete(t[slot.Namespace], slot); len(t[slot.Namespace]) == 0 {
		delete(t, slot.Namespace)
	}
}

func (t *trouble) obstructed() bool { return t != nil && t.reason == v1alpha1.ReasonConflict }

// failed sorts out why a write or a look did not succeed, reports what a person must know, and tries again later.
func (e *Engine) failed(slot propagate.Slot, action propagate.Action, err error) {
	switch {
	case gone(slot, err):
		e.answeredFor(slot)
		e.clearTrouble(slot)
	case errors.Is(err, errBeingDeleted), apierrors.IsConflict(err):
		e.queue.AddAfter(slotKey(slot), time.Second) // the watch tells sooner
	case errors.Is(err, errObstacle):
		e.answeredFor(slot)
		e.conflict(slot, action, true)
	case refused(err):
		e.answeredFor(slot)
		e.rejected(slot, action, err)
	default:
		e.retryLater(slotKey(slot), err)
	}
}

// refused says whether the API server said no, rather than not answering.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err)
}

// conflict notes that an unrelated object is in the way. Where the watch will not tell when it goes, it is looked at
// again with a back-off. In mode create the obstacle satisfies what is wanted: nothing is said.
func (e *Engine) conflict(slot propagate.Slot, action propagate.Action, unseen bool) {
	e.mu.Lock()
	source := e.world.Source(action.Source)
	silent := source != nil && source.Mode == v1alpha1.ModeCreate
	t, _ := e.trouble(slot, trouble{reason: v1alpha1.ReasonConflict, from: action.Source.Namespace, text: errObstacle.Error(), silent: silent})
	uid, say := "", source != nil && !silent && !t.told
	if say {
		uid, e.troubles.of(slot).told = source.UID, true
	}
	lower := e.world.Source(slot)
	lowest, highest := e.settings.RetryMin, min(e.settings.RetryMax, e.Timing.ConflictMax)
	e.mu.Unlock()
	if say && lower != nil && lower.Mode != v1alpha1.ModeNone {
		e.sourceEvent(slot, lower.UID, corev1.EventTypeWarning, v1alpha1.ReasonShadowed,
			fmt.Sprintf("%s/%s takes precedence: below, its copies stand where those of this object would", action.Source.Namespace, action.Source.Name))
	}
	if say {
		e.sourceEvent(action.Source, uid, corev1.EventTypeWarning, v1alpha1.ReasonConflict,
			fmt.Sprintf("%s %q can't be copied to %s: an object of that name exists", slot.Kind.Kind, slot.Name, slot.Namespace))
	}
	if unseen {
		e.queue.AddAfter(slotKey(slot), backoff(lowest, highest, t.tries))
	}
}

// rejected notes that the API server refuses a copy.
func (e *Engine) rejected(slot propagate.Slot, action propagate.Action, err error) {
	said := text.Cut(err.Error(), 512)
	e.mu.Lock()
	t, first := e.trouble(slot, trouble{reason: v1alpha1.ReasonRejected, from: action.Source.Namespace, text: said})
	source := e.world.Source(action.Source)
	uid := ""
	if source != nil {
		uid = source.UID
	}
	lowest, highest := e.settings.RetryMin, e.settings.RetryMax
	e.mu.Unlock()
	if first && uid != "" {
		e.sourceEvent(action.Source, uid, corev1.EventTypeWarning, v1alpha1.ReasonCopyRejected,
			fmt.Sprintf("%s %q was refused in %s: %s", slot.Kind.Kind, slot.Name, slot.Namespace, text.Cut(said, 256)))
	}
	e.queue.AddAfter(slotKey(slot), backoff(lowest, highest, t.tries))
}

// retryLater is for what fails without being refused: no connection, 429, 5xx.
func (e *Engine) retryLater(k key, err error) {
	e.mu.Lock()
	t, first := e.trouble(k.slot, trouble{})
	e.mu.Unlock()
	if first {
		ctrl.Log.WithName("propagation").Error(err, "a request failed; it is tried again", "slot", k.slot.String())
	}
	delay := backoff(e.Timing.TransientMin, e.Timing.TransientMax, t.tries)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		delay = max(delay, time.Duration(seconds)*time.Second)
	}
	e.queue.AddAfter(k, delay)
}

// trouble counts one more try of a slot. first says that the reason is new. The caller holds the lock.
func (e *Engine) trouble(slot propagate.Slot, one trouble) (t trouble, first bool) {
	known := e.troubles.of(slot)
	if known != nil && known.reason != "" && one.reason == "" { // what passes by itself hides nothing
		known.tries++
		return *known, false
	}
	if first = known == nil || known.reason != one.reason; first {
		if known != nil {
			e.tell(known.from)
		}
		known = &one
		e.troubles.put(slot, known)
		e.tell(slot.Namespace, one.from)
	} else if known.text != one.text || known.from != one.from || known.silent != one.silent {
		e.tell(slot.Namespace, known.from, one.from)
		known.text, known.from, known.silent = one.text, one.from, one.silent
	}
	known.tries++
	return *known, first
}

func (e *Engine) clearTrouble(slot propagate.Slot) *trouble {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.troubles.of(slot)
	if t != nil {
		e.troubles.drop(slot)
		e.tell(slot.Namespace, t.from)
	}
	return t
}

// recovered forgets the failures of a source, but not what keeps a copy from standing in its place.
func (e *Engine) recovered(k key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.troubles.of(k.slot); t != nil && t.reason == "" {
		e.troubles.drop(k.slot)
	}
}

// settled forgets the trouble of a slot that is right now, and says so where a conflict had been reported.
func (e *Engine) settled(slot propagate.Slot, action propagate.Action) {
	t := e.clearTrouble(slot)
	if !t.obstructed() || !t.told || action.Verb == propagate.Nothing {
		return
	}
	e.mu.Lock()
	source := e.world.Source(action.Source)
	uid := ""
	if source != nil {
		uid = source.UID
	}
	e.mu.Unlock()
	if uid != "" {
		e.sourceEvent(action.Source, uid, corev1.EventTypeNormal, v1alpha1.ReasonConflictResolved,
			fmt.Sprintf("%s %q was copied to %s", slot.Kind.Kind, slot.Name, slot.Namespace))
	}
}

func backoff(lowest, highest time.Duration, tries int) time.Duration {
	d := lowest << min(tries-1, 20)
	if d > highest || d <= 0 {
		d = highest
	}
	return d*4/5 + rand.N(d*2/5+1)
}

// sourceEvent tells the owner of a source, at most once for each reason in Timing.EventQuiet.
func (e *Engine) sourceEvent(slot propagate.Slot, uid, eventType string, reason v1alpha1.Reason, message string) {
	k := told{slot, reason}
	e.mu.Lock()
	last, ok := e.events[k]
	now := time.Now()
	quiet := ok && now.Sub(last) < e.Timing.EventQuiet && reason != v1alpha1.ReasonConflictResolved
	if !quiet {
		e.events[k] = now
	}
	for old, when := range e.events {
		if now.Sub(when) >= e.Timing.EventQuiet {
			delete(e.events, old)
		}
	}
	e.mu.Unlock()
	if !quiet {
		e.event(slot, uid, eventType, reason, message)
	}
}

// told is an Event that was sent.
type told struct {
	slot   propagate.Slot
	reason v1alpha1.Reason
}

func (e *Engine) event(slot propagate.Slot, uid, eventType string, reason v1alpha1.Reason, message string) {
	e.mu.Lock()
	run := e.kinds[slot.Kind]
	e.mu.Unlock()
	if run == nil || run.mapping == nil {
		return
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(run.mapping.GroupVersionKind)
	object.Namespace, object.Name, object.UID = slot.Namespace, slot.Name, types.UID(uid)
	e.Events.Event(object, eventType, string(reason), message)
}
