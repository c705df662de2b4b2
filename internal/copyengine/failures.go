package copyengine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/text"
)

// behindRetry is the pause after ErrBehind before a deletion is planned again, unless a change of the forest queues it
// sooner.
const behindRetry = time.Second

// failures decide what follows from a request that has failed:
//   - 409 to a POST: one read of the metadata. If the object is ours, an answer was lost or the watch is behind, and the work goes on with
//     that object. If it is being deleted, the slot waits for its end. Otherwise it is a conflict. A conflict is tried again by such a
//     read, not by POST.
//   - 409 to a PUT: the slot waits for the copy's next event, or for a back-off. 404 to a PUT: a POST follows.
//   - 403 with cause NamespaceTerminating, or 404 for the namespace: nothing is done until the Namespace changes. It is no error.
//   - 422 for a field that can't change (roleRef of a RoleBinding; type or data of a Secret or ConfigMap): DELETE, then POST, once for each
//     version of the source. For other kinds the copy is rejected, and the old copy stays.
//   - Any other 4xx, or 500 because etcd takes no object of that size: the copy is rejected, which is reported at once.
//   - 429, any other 5xx, no connection: a back-off, and no report.
//
// A retry of one slot delays no other slot.
type failures struct {
	*core
	events   *events
	measured *measured
	troubles *troubles
	failed   copies.FailedRequests
}

// recordFailure finds out why the requests for a slot failed, records what a person must know, and queues the slot
// again.
func (f *failures) recordFailure(slot copies.Slot, action copies.Action, err error) {
	var otherRole copies.OtherRoleError
	var unkept copies.UnkeptBindingError
	switch {
	case errors.As(err, &otherRole):
		f.recordOtherRole(slot, action, err)
	case copies.IsNamespaceGone(slot, err): // such a write is neither reported nor tried again
		f.measured.endSlot(slot)
		f.troubles.endTrouble(slot)
	case errors.Is(err, copies.ErrBeingDeleted), apierrors.IsConflict(err):
		recorded := f.troubles.recordTry(slot, slotTrouble{text: err.Error()})
		recorded.recordSeen(false)
		// A watch may queue it sooner.
		f.queueAfter(slotKey(slot), copies.Backoff(time.Second, f.settings.Timing.ConflictMax, recorded.tries, slot))
	case errors.Is(err, copies.ErrObstacle):
		f.measured.endSlot(slot)
		f.recordConflict(slot, action, true)
	// After all that the API server refuses for a passing reason: what is left here needs a person.
	case apianswer.IsRefusal(err), errors.As(err, &unkept):
		f.measured.endSlot(slot)
		f.recordRejection(slot, action, err)
	default:
		f.retryLater(slotKey(slot), err)
	}
}

// retryLater queues a key again, with a back-off, after its request has failed without being refused: no connection,
// 429, 5xx.
func (f *failures) retryLater(key Key, err error) {
	recorded := f.troubles.recordTry(key.Slot, slotTrouble{reading: key.Task == LookAtSource})
	if line, ok := f.failed.Add(f.now, key.Slot, err); ok {
		f.emitOutput(line)
	}
	f.queueAfter(key, copies.TransientBackoff(f.settings.Timing.TransientMin, f.settings.Timing.TransientMax, recorded.tries, key.Slot, err))
}

// recordConflict records that another object is in the way. Where no watch shows that object (unseen), the slot is
// tried again with a back-off. In mode create, any object of that name will do, so no Event is sent and nothing is
// reported.
func (f *failures) recordConflict(slot copies.Slot, action copies.Action, unseen bool) {
	source := f.world.Sources.At(action.Source)
	silent := source != nil && source.Mode == v1alpha1.ModeCreate
	recorded := f.troubles.recordTry(slot, slotTrouble{reason: v1alpha1.ReasonConflict, from: action.Source.Namespace,
		text: copies.ErrObstacle.Error(), silent: silent})
	recorded.recordSeen(!unseen)
	if source != nil && !silent && recorded.announceOnce() {
		// Its owner must learn why the namespaces below get another object than this source.
		if lower := f.world.Sources.At(slot); lower != nil && lower.Mode != v1alpha1.ModeNone {
			f.events.announceSource(slot, lower.UID, true, v1alpha1.ReasonShadowed,
				fmt.Sprintf("%s/%s has the same name and is nearer to the root, so the namespaces below get copies of it, not of this object",
					action.Source.Namespace, action.Source.Name))
		}
		f.events.announceSource(action.Source, source.UID, true, v1alpha1.ReasonConflict,
			fmt.Sprintf("%s %q can't be copied to %s: an object of that name exists; rename or delete one of them", slot.Kind.Kind, slot.Name,
				slot.Namespace))
	}
	if unseen {
		most := min(f.settings.RetryMax, f.settings.Timing.ConflictMax)
		f.queueAfter(slotKey(slot), copies.Backoff(f.settings.RetryMin, most, recorded.tries, slot))
	}
}

// recordRejection records that a copy is refused, by the API server or by the operator itself.
func (f *failures) recordRejection(slot copies.Slot, action copies.Action, err error) {
	said := text.Cut(err.Error(), 512)
	recorded := f.troubles.recordTry(slot, slotTrouble{reason: v1alpha1.ReasonRejected, from: action.Source.Namespace, text: said})
	if source := f.world.Sources.At(action.Source); source != nil && !passesSoon(err, recorded.tries) && recorded.announceOnce() {
		f.events.announceSource(action.Source, source.UID, true, v1alpha1.ReasonCopyRejected,
			fmt.Sprintf("%s %q was refused in %s: %s", slot.Kind.Kind, slot.Name, slot.Namespace, text.Cut(said, 256)))
	}
	f.queueAfter(slotKey(slot), copies.Backoff(f.settings.RetryMin, f.settings.RetryMax, recorded.tries, slot))
}

// recordOtherRole queues a slot again soon, because the copy of the Role may be on its way. After a few such tries the
// copy is reported as rejected. Until then the trouble has no text, so that after a start its namespace is not known:
// what was reported before the start would be withdrawn for these tries.
func (f *failures) recordOtherRole(slot copies.Slot, action copies.Action, err error) {
	const soon = 3
	if known := f.troubles.troubleAt(slot); known.reason == "" && known.tries < soon {
		recorded := f.troubles.recordTry(slot, slotTrouble{})
		f.queueAfter(slotKey(slot), copies.Backoff(time.Second/4, f.settings.Timing.ConflictMax, recorded.tries, slot))
		return
	}
	f.measured.endSlot(slot)
	f.recordRejection(slot, action, err)
}

// passesSoon reports whether the first try was refused by the cage. The cage decides by what the API server knows of
// namespaces. When a namespace has joined a tree, the API server knows that a moment later than the operator.
func passesSoon(err error, tries int) bool {
	return tries == 1 && strings.Contains(err.Error(), "'warren-operator-cage-")
}
