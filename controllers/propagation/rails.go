package propagation

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// syncLook is the pause after which a slot is planned again that waits, after a start, until all kinds are listed.
const syncLook = 200 * time.Millisecond

// rails hold back the first RoleBindings that a namespace gets from a source's namespace, until the rails stand there. A rail is a copy of
// any other kind, such as a quota or a network policy. Without this wait, whoever gets rights in a new namespace could make objects before
// the quota or network policy forbids them.
type rails struct {
	facts    facts
	kinds    *kinds
	queue    *queue
	troubles *troubles
	notices  *notices
	patience time.Duration // how long rights wait for rails that can't be written

	mu    sync.Mutex           // guards holds and each railHold; nothing else is called while it is held
	holds map[string]*railHold // by namespace
}

// railHold delays the RoleBindings of one namespace.
type railHold struct {
	since    time.Time
	missing  map[propagate.Slot]bool // rails that are still to be written
	bindings map[propagate.Slot]bool // slots of RoleBindings that wait for the rails
}

// holdBack says whether an action at slot must wait for rails in its namespace. If so, the slot is queued again when the rails stand, or when
// the slot has waited for as long as patience says.
func (r *rails) holdBack(slot propagate.Slot, action propagate.Action) bool {
	if action.Verb != propagate.Create || !propagate.GivesRights(slot) || r.facts.holdsRightsFrom(slot.Namespace, action.Source.Namespace) {
		return false
	}
	missing, waited := r.look(slot.Namespace, slot)
	if missing == nil {
		return false
	}
	left := r.patience - waited
	if left <= 0 {
		r.reportImpatience(slot, action, missing)
		return false
	}
	if r.kinds.areSyncing() || r.facts.awaitsSight(slot.Namespace) {
		left = min(left, syncLook)
	}
	r.queue.AddAfter(slotKey(slot), left)
	return true
}

// isWaiting says whether rights in namespace are to wait for rails; in a root, rails are the copies from its templates. When rights have
// waited for as long as patience says, isWaiting returns false, whatever is missing, and counts this in a metric.
func (r *rails) isWaiting(namespace string) bool {
	missing, waited := r.look(namespace)
	if missing == nil {
		return false
	}
	if waited >= r.patience {
		rightsBeforeRails.Inc()
		return false
	}
	return true
}

// look returns the rails that namespace lacks, nil where it lacks none, and how long rights have waited for them. The bindings are queued
// when the last of the rails has been written. look searches the tables twice, because the last rail may be written between the first search
// and the note that bindings wait for it.
func (r *rails) look(namespace string, bindings ...propagate.Slot) (missing []propagate.Slot, waited time.Duration) {
	missing = r.findMissing(namespace)
	if missing != nil {
		waited = r.note(namespace, missing, bindings)
		missing = r.findMissing(namespace)
	}
	if missing == nil {
		r.release(namespace)
	}
	return missing, waited
}

// findMissing returns the rails that namespace lacks. While not all kinds are known, the result is not nil, though it may be empty. A rail is
// left out where somebody else's object, or one that is being deleted, stands in its place: the maker of that object has rights in the
// namespace already.
func (r *rails) findMissing(namespace string) []propagate.Slot {
	var missing []propagate.Slot
	if r.kinds.areSyncing() || r.facts.awaitsSight(namespace) {
		missing = []propagate.Slot{}
	}
	for _, slot := range r.facts.missingRails(namespace) {
		if !r.troubles.of(slot).blocked() {
			missing = append(missing, slot)
		}
	}
	return missing
}

// note remembers that bindings wait for missing rails, and returns how long rights in namespace have waited.
func (r *rails) note(namespace string, missing, bindings []propagate.Slot) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := r.holds[namespace]
	if hold == nil {
		hold = &railHold{since: time.Now(), bindings: map[propagate.Slot]bool{}}
		r.holds[namespace] = hold
	}
	hold.missing = make(map[propagate.Slot]bool, len(missing))
	for _, slot := range missing {
		hold.missing[slot] = true
	}
	for _, slot := range bindings {
		hold.bindings[slot] = true
	}
	return time.Since(hold.since)
}

// noteTried is called after each try to write slot: if slot was the last rail that bindings in its namespace wait for, noteTried queues the
// bindings.
func (r *rails) noteTried(slot propagate.Slot) {
	if !r.isAwaited(slot) || r.facts.missesRail(slot) && !r.troubles.of(slot).blocked() {
		return
	}
	if r.strike(slot) {
		r.release(slot.Namespace)
	}
}

// isAwaited says whether RoleBindings wait for the rail at slot.
func (r *rails) isAwaited(slot propagate.Slot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := r.holds[slot.Namespace]
	return hold != nil && hold.missing[slot]
}

// strike removes slot from the missing rails of its namespace, and says whether it was the last one.
func (r *rails) strike(slot propagate.Slot) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := r.holds[slot.Namespace]
	if hold == nil {
		return false
	}
	delete(hold.missing, slot)
	return len(hold.missing) == 0
}

// release ends the wait of RoleBindings in namespace, if there is one, and queues these RoleBindings.
func (r *rails) release(namespace string) {
	r.mu.Lock()
	hold := r.holds[namespace]
	delete(r.holds, namespace)
	r.mu.Unlock()
	if hold == nil {
		return
	}
	for slot := range hold.bindings {
		r.queue.Add(slotKey(slot))
	}
}

// setForest forgets namespaces that are gone.
func (r *rails) setForest(c view.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, namespace := range c.Namespaces {
		if c.New.Namespace(namespace) == nil {
			delete(r.holds, namespace)
		}
	}
}

// reportImpatience sends a Warning on the source of a RoleBinding that is copied to a namespace although rails are missing there, and counts
// this in a metric.
func (r *rails) reportImpatience(slot propagate.Slot, action propagate.Action, missing []propagate.Slot) {
	rightsBeforeRails.Inc()
	source := r.facts.source(action.Source)
	if source == nil {
		return
	}
	lacks := "not all kinds are known there yet"
	if len(missing) > 0 {
		lacks = fmt.Sprintf("%s %q still can't be copied there", missing[0].Kind.Kind, missing[0].Name)
	}
	if more := len(missing) - 1; more > 0 {
		lacks += fmt.Sprintf(", nor %d more", more)
	}
	r.notices.tellSource(action.Source, source.UID, corev1.EventTypeWarning, v1alpha1.ReasonRailsMissing,
		fmt.Sprintf("RoleBinding %q is copied to namespace %s although %s after %s: its subjects get their rights before what is to hold them in bounds; find out what refuses the missing copy",
			slot.Name, slot.Namespace, lacks, r.patience))
}
