package copyengine

import (
	"maps"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// events send Events on sources and copies.
type events struct {
	*core
	watches *watches
	sent    map[notice]time.Time
	pruned  time.Time // when old entries of sent were last dropped: once in Timing.EventQuiet, as there may be very many
}

// notice is an Event that a source has got.
type notice struct {
	slot   copies.Slot
	reason v1alpha1.Reason
}

// isDue reports whether no such Event was sent for Timing.EventQuiet, and if so records that one is sent now.
func (e *events) isDue(one notice) bool {
	quiet := e.settings.Timing.EventQuiet
	if last, ok := e.sent[one]; ok && e.now.Sub(last) < quiet {
		return false
	}
	if e.now.Sub(e.pruned) >= quiet {
		maps.DeleteFunc(e.sent, func(_ notice, when time.Time) bool { return e.now.Sub(when) >= quiet })
		e.pruned = e.now
	}
	e.sent[one] = e.now
	return true
}

// announceSource sends an Event on a source, at most once for each reason in Timing.EventQuiet. ConflictResolved is
// always sent.
func (e *events) announceSource(slot copies.Slot, uid string, warning bool, reason v1alpha1.Reason, message string) {
	// isDue comes first, because it also records that the Event is sent.
	if e.isDue(notice{slot, reason}) || reason == v1alpha1.ReasonConflictResolved {
		e.announceObject(slot, uid, warning, reason, message)
	}
}

// announceObject sends an Event on a source or a copy.
func (e *events) announceObject(slot copies.Slot, uid string, warning bool, reason v1alpha1.Reason, message string) {
	if k := e.watches.kindOf(slot.Kind); k != nil && k.served.Kind != "" {
		e.emitOutput(copies.Event{Slot: slot, Kind: k.served, UID: uid, Warning: warning, Reason: reason, Message: message})
	}
}
