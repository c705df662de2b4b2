package copyengine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// The first RoleBindings that a namespace gets from a source's namespace wait until the rails are there: the copies of
// all other kinds, such as a quota or a network policy. Otherwise whoever gets rights in a new namespace could make
// objects before the quota or the network policy forbids them. A ResourceQuota is there when Kubernetes has counted it: the
// API server does not limit by one without status.

// syncRetry is the pause before a slot is planned again while, after a start, it waits until all kinds are listed.
const syncRetry = 200 * time.Millisecond

// rails hold back rights in namespaces until the rails there exist.
type rails struct {
	*core
	events   *events
	troubles *troubles
	watches  *watches
	waits    map[string]*railWait // by namespace
	// uncounted are copies of ResourceQuotas that Kubernetes has not counted yet, by namespace.
	uncounted map[string]map[copies.Slot]bool
}

var quotaKind = schema.GroupKind{Kind: "ResourceQuota"}

// noteCount records whether Kubernetes has counted the copy of a ResourceQuota that a watch or an answer has shown.
func (r *rails) noteCount(slot copies.Slot, object *metav1.PartialObjectMetadata) {
	known := r.world.Copies.At(slot)
	if slot.Kind != quotaKind || known == nil || known.ResourceVersion != object.ResourceVersion {
		return // a newer version was shown before
	}
	// Metadata have no status. That its fields have a manager shows that it was written.
	counted := slices.ContainsFunc(object.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" })
	if counted {
		r.dropCount(slot)
		return
	}
	if r.uncounted[slot.Namespace] == nil {
		r.uncounted[slot.Namespace] = map[copies.Slot]bool{}
	}
	r.uncounted[slot.Namespace][slot] = true
}

// dropCount is called when a copy is counted, or gone.
func (r *rails) dropCount(slot copies.Slot) {
	if !r.uncounted[slot.Namespace][slot] {
		return
	}
	if delete(r.uncounted[slot.Namespace], slot); len(r.uncounted[slot.Namespace]) == 0 {
		delete(r.uncounted, slot.Namespace)
	}
	r.endWait(slot)
}

// misses reports whether the rail at slot is still to be made, or to be counted.
func (r *rails) misses(slot copies.Slot) bool {
	return r.world.MissesRail(slot) && !r.troubles.troubleAt(slot).isBlockedUnseen() || r.isUncounted(slot)
}

func (r *rails) isUncounted(slot copies.Slot) bool {
	return r.uncounted[slot.Namespace][slot] && r.world.Copies.At(slot) != nil
}

// railWait delays the RoleBindings of one namespace.
type railWait struct {
	since    time.Time
	missing  map[copies.Slot]bool // rails that are still to be written
	bindings map[copies.Slot]bool // slots of RoleBindings that wait for the rails
}

// dropWait is called when a namespace is gone.
func (r *rails) dropWait(namespace string) {
	delete(r.waits, namespace)
	delete(r.uncounted, namespace)
}

// limitless are kinds of which no budget can limit the number: what limits a namespace is there before anything else.
var limitless = map[schema.GroupKind]bool{
	quotaKind: true, {Kind: "LimitRange"}: true, {Group: "networking.k8s.io", Kind: "NetworkPolicy"}: true, copies.RoleKind: true,
}

// holdsBack reports whether an action at slot must wait for rails in its namespace. If so, the slot is queued again
// when the rails are there, or when the slot has waited for Timing.Rails.
func (r *rails) holdsBack(slot copies.Slot, action copies.Action) bool {
	switch {
	// A removal of rights never waits, nor does a change of a binding that is there.
	case action.Verb != copies.Create, limitless[slot.Kind]:
		return false
	// Whoever has rights here already can do what rails would forbid: to wait would only keep others out.
	case copies.GivesRights(slot) && r.world.Copies.GiveRightsFrom(slot.Namespace, action.Source.Namespace):
		return false
	// Without a limit of time: until the share is counted, neither copies nor rights would be bound by the budget.
	case r.settings.AwaitsShare != nil && r.settings.AwaitsShare(slot.Namespace):
		r.queueAfter(slotKey(slot), syncRetry)
		return true
	case !copies.GivesRights(slot):
		return false
	}
	missing, waited := r.findWait(slot.Namespace, slot)
	if missing == nil {
		return false
	}
	left := r.settings.Timing.Rails - waited
	if left <= 0 {
		r.announceImpatience(slot, action, missing)
		return false
	}
	if r.watches.areSyncing() || r.world.AwaitsSight(slot.Namespace) {
		// No write of a rail ends this wait, so the slot looks again by itself.
		left = min(left, syncRetry)
	}
	r.queueAfter(slotKey(slot), left)
	return true
}

// answerRights answers for rights that do not come from copies, such as those in a root. The rails of a root are the
// copies from its templates. Rights that have waited for Timing.Rails wait no longer, whatever is missing.
func (r *rails) answerRights(namespace string) {
	missing, waited := r.findWait(namespace)
	switch {
	case missing == nil:
	case waited >= r.settings.Timing.Rails:
		r.emitOutput(RightsBeforeRails{})
	default:
		r.emitOutput(RightsWait{})
	}
}

// findWait returns the rails that namespace lacks, nil where it lacks none, and how long rights have waited for them.
// bindings are slots that are queued when the last of the rails has been written.
func (r *rails) findWait(namespace string, bindings ...copies.Slot) (missing []copies.Slot, waited time.Duration) {
	if missing = r.findMissing(namespace); missing == nil {
		r.endWaitIn(namespace)
		return nil, 0
	}
	wait := r.waits[namespace]
	if wait == nil {
		wait = &railWait{since: r.now, bindings: map[copies.Slot]bool{}}
		r.waits[namespace] = wait
	}
	// Anew each time, because rails may be added or no longer wanted while the namespace waits.
	wait.missing = make(map[copies.Slot]bool, len(missing))
	for _, slot := range missing {
		wait.missing[slot] = true
	}
	for _, slot := range bindings {
		wait.bindings[slot] = true
	}
	return missing, r.now.Sub(wait.since)
}

// findMissing returns the rails that namespace lacks. While not all kinds are known, the result is not nil, though it
// may be empty. A rail is left out if another object, or one that is being deleted, is in its place: the owner of that
// object has rights in the namespace already. If a watch has shown that object, the plan itself leaves the rail out,
// and counts it again when the object has gone.
func (r *rails) findMissing(namespace string) []copies.Slot {
	var missing []copies.Slot
	if r.watches.areSyncing() || r.world.AwaitsSight(namespace) {
		missing = []copies.Slot{}
	}
	for _, slot := range r.world.MissingRails(namespace) {
		if !r.troubles.troubleAt(slot).isBlockedUnseen() {
			missing = append(missing, slot)
		}
	}
	uncounted := slices.DeleteFunc(slices.Collect(maps.Keys(r.uncounted[namespace])), func(s copies.Slot) bool { return !r.isUncounted(s) })
	slices.SortFunc(uncounted, func(a, b copies.Slot) int { return cmp.Compare(a.Name, b.Name) })
	return append(missing, uncounted...)
}

// isBlocked reports whether an object is at the slot: another one, or one that is being deleted.
func (t slotTrouble) isBlocked() bool {
	return t.isConflict() || t.text == copies.ErrBeingDeleted.Error()
}

// isBlockedUnseen reports whether an object is at the slot that an answer of the API server has shown and no watch
// shows. Only the next answer can show that it has gone.
func (t slotTrouble) isBlockedUnseen() bool { return t.isBlocked() && !t.seen }

// endWait is called after each try to write slot, a rail or not: if its namespace lacks no rail any more, the bindings that
// wait there are queued.
func (r *rails) endWait(slot copies.Slot) {
	wait := r.waits[slot.Namespace]
	if wait == nil || wait.missing[slot] && r.misses(slot) {
		return
	}
	if delete(wait.missing, slot); len(wait.missing) == 0 && r.findMissing(slot.Namespace) == nil {
		r.endWaitIn(slot.Namespace)
	}
}

// endWaitIn ends the wait of RoleBindings in namespace, if there is one, and queues these RoleBindings.
func (r *rails) endWaitIn(namespace string) {
	wait := r.waits[namespace]
	if wait == nil {
		return
	}
	delete(r.waits, namespace)
	for slot := range wait.bindings {
		r.queueKeys(slotKey(slot))
	}
}

// announceImpatience sends a Warning on the source of a RoleBinding that is copied to a namespace although rails are
// missing there.
func (r *rails) announceImpatience(slot copies.Slot, action copies.Action, missing []copies.Slot) {
	r.emitOutput(RightsBeforeRails{})
	source := r.world.Sources.At(action.Source)
	if source == nil {
		return
	}
	lacks := "the operator can't list all kinds there yet"
	if len(missing) > 0 {
		lacks = fmt.Sprintf("the copy of %s %q is still missing there", missing[0].Kind.Kind, missing[0].Name)
		if r.isUncounted(missing[0]) {
			lacks = fmt.Sprintf("Kubernetes has not counted the copy of %s %q there", missing[0].Kind.Kind, missing[0].Name)
		}
	}
	if more := len(missing) - 1; more > 0 {
		lacks += fmt.Sprintf(", and %d more", more)
	}
	r.events.announceSource(action.Source, source.UID, true, v1alpha1.ReasonRailsMissing,
		fmt.Sprintf("RoleBinding %q is copied to namespace %s after a wait of %s, although %s. Its subjects may have rights before the "+
			"objects that limit them exist: find out what is missing, and why",
			slot.Name, slot.Namespace, r.settings.Timing.Rails, lacks))
}
