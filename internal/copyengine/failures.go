package copyengine

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/text"
)

// behindRetry is the pause after ErrBehind before a deletion is planned again, unless a change of the forest queues it sooner.
const behindRetry = time.Second

// recordFailure finds out why the requests for a slot failed, records what a person must know, and queues the slot again.
func (s *State) recordFailure(slot copies.Slot, action copies.Action, err error) {
	var otherRole copies.OtherRoleError
	var unkept copies.UnkeptBindingError
	switch {
	case errors.As(err, &otherRole):
		s.recordOtherRole(slot, action, err)
	case copies.IsNamespaceGone(slot, err): // such a write is neither reported nor tried again
		s.endMeasured(slot)
		s.endTrouble(slot)
	case errors.Is(err, copies.ErrBeingDeleted), apierrors.IsConflict(err):
		recorded := s.recordTrouble(slot, slotTrouble{text: err.Error()})
		recorded.seen = false
		// A watch may queue it sooner.
		s.queueAfter(slotKey(slot), copies.Backoff(time.Second, s.settings.Timing.ConflictMax, recorded.tries, slot))
	case errors.Is(err, copies.ErrObstacle):
		s.endMeasured(slot)
		s.recordConflict(slot, action, true)
	case apianswer.IsRefusal(err), errors.As(err, &unkept):
		s.endMeasured(slot)
		s.recordRejection(slot, action, err)
	default:
		s.retryLater(slotKey(slot), err)
	}
}

// retryLater queues a key again, with a back-off, after its request has failed without being refused: no connection, 429, 5xx.
func (s *State) retryLater(key Key, err error) {
	recorded := s.recordTrouble(key.Slot, slotTrouble{reading: key.Task == LookAtSource})
	if line, ok := s.failed.Add(s.now, key.Slot, err); ok {
		s.emitOutput(line)
	}
	s.queueAfter(key, copies.TransientBackoff(s.settings.Timing.TransientMin, s.settings.Timing.TransientMax, recorded.tries, key.Slot, err))
}

// recordConflict records that another object is in the way. Where no watch shows that object (unseen), the slot is tried again with a
// back-off. In mode create, any object of that name will do, so no Event is sent and nothing is reported.
func (s *State) recordConflict(slot copies.Slot, action copies.Action, unseen bool) {
	source := s.world.Sources.At(action.Source)
	silent := source != nil && source.Mode == v1alpha1.ModeCreate
	recorded := s.recordTrouble(slot, slotTrouble{reason: v1alpha1.ReasonConflict, from: action.Source.Namespace,
		text: copies.ErrObstacle.Error(), silent: silent})
	recorded.seen = !unseen
	if source != nil && !silent && recorded.announceOnce() {
		if lower := s.world.Sources.At(slot); lower != nil && lower.Mode != v1alpha1.ModeNone {
			s.announceSource(slot, lower.UID, true, v1alpha1.ReasonShadowed,
				fmt.Sprintf("%s/%s has the same name and is nearer to the root, so the namespaces below get copies of it, not of this object",
					action.Source.Namespace, action.Source.Name))
		}
		s.announceSource(action.Source, source.UID, true, v1alpha1.ReasonConflict,
			fmt.Sprintf("%s %q can't be copied to %s: an object of that name exists; rename or delete one of them", slot.Kind.Kind, slot.Name,
				slot.Namespace))
	}
	if unseen {
		most := min(s.settings.RetryMax, s.settings.Timing.ConflictMax)
		s.queueAfter(slotKey(slot), copies.Backoff(s.settings.RetryMin, most, recorded.tries, slot))
	}
}

// recordRejection records that a copy is refused, by the API server or by the operator itself.
func (s *State) recordRejection(slot copies.Slot, action copies.Action, err error) {
	said := text.Cut(err.Error(), 512)
	recorded := s.recordTrouble(slot, slotTrouble{reason: v1alpha1.ReasonRejected, from: action.Source.Namespace, text: said})
	if source := s.world.Sources.At(action.Source); source != nil && !passesSoon(err, recorded.tries) && recorded.announceOnce() {
		s.announceSource(action.Source, source.UID, true, v1alpha1.ReasonCopyRejected,
			fmt.Sprintf("%s %q was refused in %s: %s", slot.Kind.Kind, slot.Name, slot.Namespace, text.Cut(said, 256)))
	}
	s.queueAfter(slotKey(slot), copies.Backoff(s.settings.RetryMin, s.settings.RetryMax, recorded.tries, slot))
}

// recordOtherRole queues a slot again soon, because the copy of the Role may be on its way. After a few such tries the copy is reported as
// rejected.
func (s *State) recordOtherRole(slot copies.Slot, action copies.Action, err error) {
	const soon = 3
	if known := s.troubleOf(slot); known.reason == "" && known.tries < soon {
		recorded := s.recordTrouble(slot, slotTrouble{text: err.Error()})
		s.queueAfter(slotKey(slot), copies.Backoff(time.Second/4, s.settings.Timing.ConflictMax, recorded.tries, slot))
		return
	}
	s.endMeasured(slot)
	s.recordRejection(slot, action, err)
}

// passesSoon reports whether the first try was refused by the cage. The cage decides by what the API server knows of namespaces. When a
// namespace has joined a tree, the API server knows that a moment later than the operator.
func passesSoon(err error, tries int) bool {
	return tries == 1 && strings.Contains(err.Error(), "'warren-operator-cage-")
}

// announceOnce reports whether no Event was sent yet about a trouble, and records that one is sent now.
func (t *slotTrouble) announceOnce() bool {
	first := !t.announced
	t.announced = true
	return first
}

// notices are the Events that sources have got lately.
type notices struct {
	sent   map[notice]time.Time
	pruned time.Time // when old entries of sent were last dropped: once in Timing.EventQuiet, as there may be very many
}

// notice is an Event that a source has got.
type notice struct {
	slot   copies.Slot
	reason v1alpha1.Reason
}

func newNotices() notices { return notices{sent: map[notice]time.Time{}} }

// isDue reports whether no such Event was sent for the time quiet, and if so records that one is sent now.
func (n *notices) isDue(one notice, now time.Time, quiet time.Duration) bool {
	if last, ok := n.sent[one]; ok && now.Sub(last) < quiet {
		return false
	}
	if now.Sub(n.pruned) >= quiet {
		maps.DeleteFunc(n.sent, func(_ notice, when time.Time) bool { return now.Sub(when) >= quiet })
		n.pruned = now
	}
	n.sent[one] = now
	return true
}

// announceSource sends an Event on a source, at most once for each reason in Timing.EventQuiet. ConflictResolved is always sent.
func (s *State) announceSource(slot copies.Slot, uid string, warning bool, reason v1alpha1.Reason, message string) {
	if s.notices.isDue(notice{slot, reason}, s.now, s.settings.Timing.EventQuiet) || reason == v1alpha1.ReasonConflictResolved {
		s.announceTrouble(slot, uid, warning, reason, message)
	}
}

// announceTrouble sends an Event on a source or a copy.
func (s *State) announceTrouble(slot copies.Slot, uid string, warning bool, reason v1alpha1.Reason, message string) {
	if k := s.kinds[slot.Kind]; k != nil && k.served.Kind != "" {
		s.emitOutput(copies.Event{Slot: slot, Kind: k.served, UID: uid, Warning: warning, Reason: reason, Message: message})
	}
}
