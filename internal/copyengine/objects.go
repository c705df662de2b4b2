package copyengine

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// objects take what watches and answers show into the World.
type objects struct {
	*core
	measured *measured
	removals *removals
	repairs  *repairs
	troubles *troubles
	watches  *watches
	// newest holds, for each watch of copies, the highest resourceVersion that the watch has shown.
	newest copies.Newest[watchedPlace]
	// unlabelled holds the UIDs of copies that a read has found without their label inherited-from: no watch shows when
	// such a copy is gone.
	unlabelled map[copies.Slot]string
	// unplaced are objects that the watch of a kind in mode All shows, with a hash as copies have it, without their label
	// inherited-from, and with no source above as far as the forest shows. A watch of Namespaces may be behind.
	unplaced map[copies.Slot]*copies.Copy
	// sought are the missing sources that FindLoss requests are looking for. An answer counts only while its source is
	// in sought. A source leaves it when a watch shows it, or when its namespace changes.
	sought map[copies.Slot]bool
	// bodies is what the last read of each source has shown.
	bodies map[copies.Slot]readVersion
}

// watchedPlace names a watch of copies by its kind and namespace; the namespace is Everywhere for a watch of the whole
// cluster.
type watchedPlace struct {
	kind      schema.GroupKind
	namespace string
}

func (o *objects) watchedPlaceOf(kind schema.GroupKind, namespace string) watchedPlace {
	if k := o.watches.kindOf(kind); o.world.Sights.IsNarrow(kind) && !k.showsCopiesWide() {
		return watchedPlace{kind, namespace}
	}
	return watchedPlace{kind, copies.Everywhere}
}

func (w Watch) slotOf(object *metav1.PartialObjectMetadata) copies.Slot {
	return copies.Slot{Kind: w.Kind, Namespace: object.Namespace, Name: object.Name}
}

// beginSearch records that a FindLoss request looks for a source. endSearch reports whether its answer counts.
func (o *objects) beginSearch(source copies.Slot) { o.sought[source] = true }

func (o *objects) endSearch(source copies.Slot) bool {
	counts := o.sought[source]
	delete(o.sought, source)
	return counts
}

// changeNamespaces is called when the forest has changed for these namespaces.
func (o *objects) changeNamespaces(namespaces []string) {
	if len(o.sought) == 0 && len(o.unplaced) == 0 {
		return
	}
	changed := make(map[string]bool, len(namespaces))
	for _, namespace := range namespaces {
		changed[namespace] = true
	}
	// The answers of FindLoss requests that are under way may be outdated, so the sources are looked for again.
	maps.DeleteFunc(o.sought, func(slot copies.Slot, _ bool) bool { return changed[slot.Namespace] })
	for slot := range o.unplaced {
		if changed[slot.Namespace] {
			o.placeUnlabelled(slot)
		}
	}
}

func (o *objects) takeObject(watch Watch, object *metav1.PartialObjectMetadata) {
	o.recordNewest(watch, object.Namespace, object.ResourceVersion)
	if watch.Role == SourcesAndCopies && o.takeUnlabelled(watch, object) {
		return
	}
	if watch.Role.showsSources() {
		o.takeSource(watch, object)
	}
	if watch.Role.showsCopies() {
		o.takeCopy(watch, object)
	}
}

func (o *objects) takeSource(watch Watch, object *metav1.PartialObjectMetadata) {
	slot := watch.slotOf(object)
	known := o.world.Sources.At(slot)
	if known != nil && isPast(object, known.ResourceVersion) {
		return
	}
	now, ok := o.settings.Rules.SourceOf(slot, object, o.watches.kindOf(watch.Kind).Mode)
	if !ok {
		o.dropSource(slot)
		return
	}
	if known != nil && known.ResourceVersion == now.ResourceVersion {
		return
	}
	delete(o.sought, slot)
	o.completeSource(slot, now)
	o.world.PutSource(slot, now)
	o.queueLimits(slot.Namespace)
	o.queueKeys(sourceTask(slot))
	o.measured.beginFanout(watch.Kind, slot)
}

func (o *objects) takeCopy(watch Watch, object *metav1.PartialObjectMetadata) {
	slot := watch.slotOf(object)
	known := o.world.Copies.At(slot)
	if known != nil && isPast(object, known.ResourceVersion) {
		return
	}
	if _, labelled := object.Labels[v1alpha1.LabelInheritedFrom]; !labelled {
		o.dropCopy(slot)
		return
	}
	// Another object of the same name: nothing that was known of the old one holds.
	if known != nil && known.UID != string(object.UID) {
		known = nil
	}
	if known != nil && !forest.IsNewer(object.ResourceVersion, known.ResourceVersion) {
		return // the answer to the operator's own write came before the watch
	}
	now := o.settings.Rules.CopyOf(slot, object)
	if known != nil && known.Digest != 0 {
		// A copy that this process has not written has no digest: its drift is found by Inspect.
		now.Digest = o.settings.Rules.Digest(object)
		now.Drifted = known.Drifted || now.Digest != known.Digest
	}
	o.putCopy(slot, now)
}

func (o *objects) putCopy(slot copies.Slot, now *copies.Copy) {
	delete(o.unlabelled, slot)
	o.world.PutCopy(slot, now)
	o.queueNaming(slot)
	o.queueKeys(slotKey(slot))
	o.removals.endBarrier(slot.Namespace)
}

// isPast reports whether object is older than what is known of its place, also where that is another object of the name: a
// watch that takes the place of another may begin with older versions than the other has shown.
func isPast(object *metav1.PartialObjectMetadata, resourceVersion string) bool {
	return forest.IsNewer(resourceVersion, object.ResourceVersion)
}

func (o *objects) takeEnd(e ObjectGone) {
	o.recordNewest(e.Watch, e.Object.Namespace, e.Object.ResourceVersion)
	slot, uid := e.slotOf(e.Object), string(e.Object.UID)
	if c := o.unplaced[slot]; c != nil && c.UID == uid {
		delete(o.unplaced, slot)
	}
	if known := o.world.Sources.At(slot); e.Role.showsSources() && known != nil && known.UID == uid &&
		!isPast(e.Object, known.ResourceVersion) {
		o.dropSource(slot)
		o.measured.beginFanout(slot.Kind, slot)
	}
	if known := o.world.Copies.At(slot); e.Role.showsCopies() && known != nil && known.UID == uid &&
		!isPast(e.Object, known.ResourceVersion) {
		o.dropCopy(slot)
	}
}

func (o *objects) takeList(l Listed) {
	exists := make(map[copies.Slot]bool, len(l.Objects))
	o.dropUnplaced(l.Watch, l.Namespace)
	for _, object := range l.Objects {
		exists[l.slotOf(object)] = true
		o.takeObject(l.Watch, object)
	}
	o.recordNewest(l.Watch, l.Namespace, l.ResourceVersion)
	// Objects that are newer than the list, which another watch or an answer has shown, stay as they are.
	sources, copied := o.world.KindIn(l.Kind, l.Namespace)
	sources = slices.DeleteFunc(sources, func(slot copies.Slot) bool {
		return forest.IsNewer(o.world.Sources.At(slot).ResourceVersion, l.ResourceVersion)
	})
	copied = slices.DeleteFunc(copied, func(slot copies.Slot) bool {
		return forest.IsNewer(o.world.Copies.At(slot).ResourceVersion, l.ResourceVersion)
	})
	o.dropMissing(l.Watch, sources, copied, exists)
	if l.Role.showsSources() {
		o.seekDoubtful(l.Namespace, func(slot copies.Slot) bool { return slot.Kind == l.Kind && o.world.Loss(slot) == copies.Doubtful })
	}
}

// seekDoubtful has those missing sources in namespace looked for again that a read found, and that no watch has shown.
func (o *objects) seekDoubtful(namespace string, sought func(copies.Slot) bool) {
	for _, slot := range o.world.Doubtful(namespace) {
		if sought(slot) {
			o.world.SetLoss(slot, copies.Unverified)
			o.queueKeys(sourceTask(slot))
		}
	}
}

// dropMissing drops those of sources and copied that the watch would show, but that are not in exists.
func (o *objects) dropMissing(watch Watch, sources, copied []copies.Slot, exists map[copies.Slot]bool) {
	for _, slot := range sources {
		if watch.Role.showsSources() && !exists[slot] {
			o.dropSource(slot)
		}
	}
	for _, slot := range copied {
		if watch.Role.showsCopies() && !exists[slot] {
			o.dropCopy(slot)
		}
	}
}

func (o *objects) dropSource(slot copies.Slot) {
	if o.world.Sources.At(slot) == nil {
		return
	}
	delete(o.sought, slot)
	o.world.DeleteSource(slot)
	o.troubles.recordInvalid(slot, nil)
	delete(o.bodies, slot)
	o.queueLimits(slot.Namespace)
	o.queueKeys(sourceTask(slot), slotKey(slot)) // slotKey: the source may have been in the way of a copy from above
}

func (o *objects) dropCopy(slot copies.Slot) {
	known := o.world.Copies.At(slot)
	if known == nil {
		return
	}
	delete(o.unlabelled, slot)
	o.repairs.dropDrift(slot)
	o.world.DeleteCopy(slot)
	o.queueLimits(known.From)
	o.queueNaming(slot)
	o.queueKeys(slotKey(slot))
	// If other copies are still to go, the next plan raises the barrier again.
	o.removals.endBarrier(slot.Namespace)
}

// recordNewest records the resourceVersion of an object or of a list that a watch of copies has shown in namespace.
func (o *objects) recordNewest(watch Watch, namespace, resourceVersion string) {
	if watch.Role.showsCopies() {
		o.newest.Record(o.watchedPlaceOf(watch.Kind, namespace), resourceVersion)
	}
}

func (o *objects) changeWatch(c WatchChanged) {
	k := o.watches.kindOf(c.Kind)
	w := k.watches[c.Role]
	if k.setResource(c.Status) {
		o.readAnew(c.Kind)
	}
	k.recordFailure(c.Status.Err)
	if !k.IsNarrow() {
		o.watches.setState(k, w, w.state.After(c.Status))
		return
	}
	o.changeNarrowWatch(k, w, c)
}

// readAnew has all sources of a kind read again: in another version of the kind they may have other content.
func (o *objects) readAnew(kind schema.GroupKind) {
	sources, _ := o.world.KindIn(kind, copies.Everywhere)
	for _, slot := range sources {
		delete(o.bodies, slot)
		o.world.ForgetContent(slot)
		o.queueKeys(sourceTask(slot))
	}
}

// changeNarrowWatch takes in the status of a watch of a narrow kind in one namespace or, in scope Auto, in the whole
// cluster.
func (o *objects) changeNarrowWatch(k *watchedKind, w *watchState, c WatchChanged) {
	namespace, now := c.Namespace, c.Status
	wasWide := w.isWide()
	changed := w.recordStatus(namespace, now)
	ended := now.State == watchset.Pending && now.Err == nil && namespace != copies.Everywhere
	switch {
	case ended && wasWide: // the watch of the whole cluster shows what this watch has shown
		delete(o.newest, watchedPlace{c.Kind, namespace})
		o.watches.setSight(c.Watch, namespace, copies.Awaited)
	case ended:
		o.dropNamespace(c.Watch, namespace)
	default:
		o.watches.setSight(c.Watch, namespace, sightOf(now))
	}
	if wasWide && !w.isWide() || now.State == watchset.Synced && o.watches.hasDepartedAny() {
		o.emitOutput(FollowSoon{})
	}
	if changed && namespace == copies.Everywhere && now.State == watchset.Forbidden { // a degraded watch may recover without a new list
		o.dropElsewhere(c.Watch)
	}
	o.watches.setNarrowState(k, w)
	if changed {
		o.reportVisibility(namespace)
	}
}

// dropElsewhere is called when a watch of the whole cluster has ended. It drops the objects from namespaces that are
// not followed, because no other watch would show when such an object goes. No slot or source is queued, because the
// objects may still exist.
func (o *objects) dropElsewhere(watch Watch) {
	sources, copied := o.world.KindIn(watch.Kind, copies.Everywhere)
	followed := o.watches.findFollowed()
	isElsewhere := func(slot copies.Slot) bool { _, is := followed[slot.Namespace]; return !is }
	before := o.out.countKeys()
	maps.DeleteFunc(o.unplaced, func(slot copies.Slot, _ *copies.Copy) bool { return slot.Kind == watch.Kind && isElsewhere(slot) })
	for _, slot := range sources {
		if watch.Role.showsSources() && isElsewhere(slot) {
			o.dropSource(slot)
		}
	}
	for _, slot := range copied {
		if watch.Role.showsCopies() && isElsewhere(slot) {
			o.dropCopy(slot)
			delete(o.newest, o.watchedPlaceOf(slot.Kind, slot.Namespace))
		}
	}
	o.out.dropKeysSince(before)
}

// dropNamespace drops what a watch has shown of a namespace that it does not show any more. Slots and sources are
// queued only if the namespace itself is gone: otherwise the dropped objects may still exist.
func (o *objects) dropNamespace(watch Watch, namespace string) {
	o.world.Sights.Set(watch.Kind, namespace, watch.Role.showsSources(), watch.Role.showsCopies(), copies.Awaited)
	sources, copied := o.world.KindIn(watch.Kind, namespace)
	before := o.out.countKeys()
	o.dropUnplaced(watch, namespace)
	o.dropMissing(watch, sources, copied, nil)
	if watch.Role.showsCopies() {
		delete(o.newest, o.watchedPlaceOf(watch.Kind, namespace))
	}
	if o.world.Forest.Namespace(namespace) != nil {
		o.out.dropKeysSince(before)
	}
}
