package copyengine

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/mirror"
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
	tables   map[schema.GroupKind]*table
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

// shown is an object as a watch shows it: as a source, as a copy, or as neither.
type shown struct {
	source *copies.Source
	copy   *metav1.PartialObjectMetadata
	// lacksLabel reports that the copy has no label inherited-from, so it has drifted.
	lacksLabel bool
}

func (o *objects) judge(watch Watch, object *metav1.PartialObjectMetadata) (is shown) {
	slot := watch.slotOf(object)
	if watch.Role == SourcesAndCopies {
		if is.copy = o.findUnlabelled(slot, object); is.copy != nil {
			is.lacksLabel = true
			return is
		}
	}
	if _, labelled := object.Labels[v1alpha1.LabelInheritedFrom]; labelled && watch.Role.showsCopies() {
		is.copy = object
	}
	if source, ok := o.settings.Rules.SourceOf(slot, object, o.watches.kindOf(watch.Kind).Mode); ok && watch.Role.showsSources() {
		is.source = source
	}
	return is
}

func (o *objects) takeObject(watch Watch, object *metav1.PartialObjectMetadata) {
	t, is := o.ofKind(watch.Kind), o.judge(watch, object)
	if watch.Role.showsSources() {
		show := t.sources.Show
		if is.source == nil {
			show = t.sources.Hide
		}
		if c, changed := show(shownSource{object, is.source}); changed {
			o.noteSource(copies.SlotOf(t.kind, c.Place), c)
		}
	}
	if !watch.Role.showsCopies() {
		return
	}
	show, meta := t.copies.Show, is.copy
	if meta == nil {
		show, meta = t.copies.Hide, object
	}
	if c, changed := show(shownCopy{meta, nil}); changed {
		o.noteCopy(copies.SlotOf(t.kind, c.Place), c)
	}
	o.noteDrift(t, is)
}

// noteSource is called when a source has come, has changed, or is gone.
func (o *objects) noteSource(slot copies.Slot, c mirror.Change[copies.Source]) {
	delete(o.sought, slot)
	o.queueLimits(slot.Namespace)
	if c.Is == nil {
		o.troubles.recordInvalid(slot, nil)
		delete(o.bodies, slot)
		o.queueKeys(sourceTask(slot), slotKey(slot)) // slotKey: the source may have been in the way of a copy from above
		return
	}
	o.queueKeys(sourceTask(slot))
	o.measured.beginFanout(slot.Kind, slot)
}

// noteCopy is called when a copy has come, has changed, or is gone.
func (o *objects) noteCopy(slot copies.Slot, c mirror.Change[copies.Copy]) {
	delete(o.unlabelled, slot)
	if c.Is == nil {
		o.repairs.dropDrift(slot)
		o.queueLimits(c.Was.From)
	}
	o.queueNaming(slot)
	o.queueKeys(slotKey(slot))
	// If other copies are still to go, the next plan raises the barrier again.
	o.removals.endBarrier(slot.Namespace)
}

// noteDrift records that the copy in a slot has lost its label, if what was shown is what is known.
func (o *objects) noteDrift(t *table, is shown) {
	if !is.lacksLabel || t.copies.Mark(mirror.PlaceOf(is.copy)) != mirror.MarkOf(is.copy) {
		return
	}
	slot := copies.SlotOf(t.kind, mirror.PlaceOf(is.copy))
	known := o.world.Copies.At(slot)
	known.Drifted = true
	o.world.PutCopy(slot, known)
}

func (o *objects) takeEnd(e ObjectGone) {
	t, slot := o.ofKind(e.Kind), e.slotOf(e.Object)
	if c := o.unplaced[slot]; c != nil && c.UID == string(e.Object.UID) {
		delete(o.unplaced, slot)
	}
	if e.Role.showsSources() {
		if c, changed := t.sources.End(shownSource{e.Object, nil}); changed {
			o.noteSource(slot, c)
			o.measured.beginFanout(slot.Kind, slot)
		}
	}
	if e.Role.showsCopies() {
		if c, changed := t.copies.End(shownCopy{e.Object, nil}); changed {
			o.noteCopy(slot, c)
		}
	}
}

func (o *objects) takeList(l Listed) {
	t := o.ofKind(l.Kind)
	o.dropUnplaced(l.Watch, l.Namespace)
	var sources []shownSource
	var copied []shownCopy
	var drifted []shown
	for _, object := range l.Objects {
		is := o.judge(l.Watch, object)
		if is.source != nil {
			sources = append(sources, shownSource{object, is.source})
		}
		if is.copy != nil {
			copied = append(copied, shownCopy{is.copy, nil})
		}
		if is.lacksLabel {
			drifted = append(drifted, is)
		}
	}
	if l.Role.showsSources() {
		o.noteSources(t, t.sources.List(l.Namespace, l.ResourceVersion, sources))
	}
	if l.Role.showsCopies() {
		o.noteCopies(t, t.copies.List(l.Namespace, l.ResourceVersion, copied))
	}
	for _, is := range drifted {
		o.noteDrift(t, is)
	}
	if l.Role.showsSources() {
		o.seekDoubtful(l.Namespace, func(slot copies.Slot) bool { return slot.Kind == l.Kind && o.world.Loss(slot) == copies.Doubtful })
	}
}

func (o *objects) noteSources(t *table, changes []mirror.Change[copies.Source]) {
	for _, c := range changes {
		o.noteSource(copies.SlotOf(t.kind, c.Place), c)
	}
}

func (o *objects) noteCopies(t *table, changes []mirror.Change[copies.Copy]) {
	for _, c := range changes {
		o.noteCopy(copies.SlotOf(t.kind, c.Place), c)
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

// dropCopy forgets a copy that no watch shows.
func (o *objects) dropCopy(slot copies.Slot) {
	if known := o.world.Copies.At(slot); known != nil {
		o.world.DeleteCopy(slot)
		o.noteCopy(slot, mirror.Change[copies.Copy]{Was: known})
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
		o.ofKind(c.Kind).endWatch(c.Role, namespace)
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
	t, followed := o.ofKind(watch.Kind), o.watches.findFollowed()
	isElsewhere := func(slot copies.Slot) bool { _, is := followed[slot.Namespace]; return !is }
	before := o.out.countKeys()
	maps.DeleteFunc(o.unplaced, func(slot copies.Slot, _ *copies.Copy) bool { return slot.Kind == watch.Kind && isElsewhere(slot) })
	sources, copied := o.world.KindIn(watch.Kind, copies.Everywhere)
	for _, slot := range append(sources, copied...) {
		if isElsewhere(slot) {
			o.forgetNamespace(t, watch.Role, slot.Namespace)
		}
	}
	t.endWatch(watch.Role, copies.Everywhere)
	o.out.dropKeysSince(before)
}

// forgetNamespace forgets what a watch has shown of a namespace.
func (o *objects) forgetNamespace(t *table, role Role, namespace string) {
	if role.showsSources() {
		o.noteSources(t, t.sources.SetBlind(namespace, ""))
	}
	if role.showsCopies() {
		o.noteCopies(t, t.copies.SetBlind(namespace, ""))
	}
	t.endWatch(role, namespace)
}

// dropNamespace drops what a watch has shown of a namespace that it does not show any more. Slots and sources are
// queued only if the namespace itself is gone: otherwise the dropped objects may still exist.
func (o *objects) dropNamespace(watch Watch, namespace string) {
	o.world.Sights.Set(watch.Kind, namespace, watch.Role.showsSources(), watch.Role.showsCopies(), copies.Awaited)
	before := o.out.countKeys()
	o.dropUnplaced(watch, namespace)
	o.forgetNamespace(o.ofKind(watch.Kind), watch.Role, namespace)
	if o.world.Forest.Namespace(namespace) != nil {
		o.out.dropKeysSince(before)
	}
}

// forgetReplaced voids the answers to requests about namespaces that are gone, or were made anew, since the requests began.
func (o *objects) forgetReplaced(before, now *forest.Snapshot, namespaces []string) {
	for _, name := range namespaces {
		if !forest.HasEnded(before, now, name) {
			continue
		}
		for _, t := range o.tables {
			t.copies.ForgetNamespace(name, "")
		}
	}
}
