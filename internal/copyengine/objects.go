package copyengine

import (
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// watchedPlace names a watch of copies by its kind and namespace; the namespace is Everywhere for a watch of the whole cluster.
type watchedPlace struct {
	kind      schema.GroupKind
	namespace string
}

func (s *State) watchedPlaceOf(kind schema.GroupKind, namespace string) watchedPlace {
	if s.world.Sights.IsNarrow(kind) {
		return watchedPlace{kind, namespace}
	}
	return watchedPlace{kind, copies.Everywhere}
}

func (w Watch) slotOf(object *metav1.PartialObjectMetadata) copies.Slot {
	return copies.Slot{Kind: w.Kind, Namespace: object.Namespace, Name: object.Name}
}

func (c ForestChanged) applyTo(s *State) {
	s.world.Forest = c.New
	s.recordDeparted(c)
	s.forgetSought(c.Namespaces)
	for _, namespace := range c.Namespaces {
		s.queueKeys(namespaceKey(namespace))
		for _, slot := range s.world.Doubtful(namespace) {
			s.world.SetLoss(slot, copies.Unverified)
			s.queueKeys(sourceTask(slot))
		}
		if c.New.Namespace(namespace) == nil {
			delete(s.railWaits, namespace)
		}
	}
	for _, root := range s.world.Limits.RootsHeldBack() {
		s.queueKeys(limitsKey(root))
	}
	s.forgetTroubles(c)
	if s.measured.leading {
		s.measured.moves.beginMoves(c, s.now)
	}
	s.emitOutput(FollowSoon{})
}

// forgetSought discards the answers of FindLoss requests that are under way for sources in these namespaces. They may be outdated, so the
// sources are looked for again.
func (s *State) forgetSought(namespaces []string) {
	if len(s.sought) == 0 {
		return
	}
	changed := make(map[string]bool, len(namespaces))
	for _, namespace := range namespaces {
		changed[namespace] = true
	}
	maps.DeleteFunc(s.sought, func(slot copies.Slot, _ bool) bool { return changed[slot.Namespace] })
}

func (o ObjectSeen) applyTo(s *State) { s.takeObject(o.Watch, o.Object) }

func (s *State) takeObject(watch Watch, object *metav1.PartialObjectMetadata) {
	s.recordNewest(watch, object.Namespace, object.ResourceVersion)
	if watch.Role == SourcesAndCopies {
		// A watch of every object goes on to show a copy whose label inherited-from was removed, so that it can be repaired at once. In a watch
		// of labelled objects such a copy merely disappears, and the POST that follows finds it.
		if from := copies.UnlabelledFrom(s.world.Forest, watch.slotOf(object), object); from != "" {
			s.takeUnlabelled(watch, object, from)
			return
		}
	}
	if watch.Role.showsSources() {
		s.takeSource(watch, object)
	}
	if watch.Role.showsCopies() {
		s.takeCopy(watch, object)
	}
}

// takeUnlabelled takes in a copy without its label inherited-from as a copy that has drifted.
func (s *State) takeUnlabelled(watch Watch, object *metav1.PartialObjectMetadata, from string) {
	slot := watch.slotOf(object)
	object = object.DeepCopy()
	metav1.SetMetaDataLabel(&object.ObjectMeta, v1alpha1.LabelInheritedFrom, from)
	s.takeCopy(watch, object)
	if known := s.world.Copies.At(slot); known != nil && known.ResourceVersion == object.ResourceVersion {
		known.Drifted = true
		s.world.PutCopy(slot, known)
	}
	s.dropSource(slot)
}

func (s *State) takeSource(watch Watch, object *metav1.PartialObjectMetadata) {
	slot := watch.slotOf(object)
	known := s.world.Sources.At(slot)
	if known != nil && isPast(object, known.UID, known.ResourceVersion) {
		return
	}
	now, ok := s.settings.Rules.SourceOf(slot, object, s.kinds[watch.Kind].Mode)
	if !ok {
		s.dropSource(slot)
		return
	}
	if known != nil && known.ResourceVersion == now.ResourceVersion {
		return
	}
	delete(s.sought, slot)
	s.completeSource(slot, now)
	s.world.PutSource(slot, now)
	s.queueLimits(slot.Namespace)
	s.queueKeys(sourceTask(slot))
	s.beginFanout(watch.Kind, slot)
}

func (s *State) takeCopy(watch Watch, object *metav1.PartialObjectMetadata) {
	slot := watch.slotOf(object)
	known := s.world.Copies.At(slot)
	if known != nil && isPast(object, known.UID, known.ResourceVersion) {
		return
	}
	if _, labelled := object.Labels[v1alpha1.LabelInheritedFrom]; !labelled {
		s.dropCopy(slot)
		return
	}
	if known != nil && known.UID != string(object.UID) {
		known = nil
	}
	if known != nil && !forest.IsNewer(object.ResourceVersion, known.ResourceVersion) {
		return // the answer to the operator's own write came before the watch
	}
	now := s.settings.Rules.CopyOf(slot, object)
	if known != nil && known.Digest != 0 {
		now.Digest = s.settings.Rules.Digest(object)
		now.Drifted = known.Drifted || now.Digest != known.Digest
	}
	delete(s.unlabelled, slot)
	s.world.PutCopy(slot, now)
	s.queueKeys(slotKeys(s.world.BindingsTo(slot))...)
	s.queueKeys(slotKey(slot))
	s.endBarrier(slot.Namespace)
}

// isPast reports whether object is an older version of the known one. A watch that takes the place of another may begin with older versions
// than the other has shown.
func isPast(object *metav1.PartialObjectMetadata, uid, resourceVersion string) bool {
	return string(object.UID) == uid && forest.IsNewer(resourceVersion, object.ResourceVersion)
}

func (o ObjectGone) applyTo(s *State) {
	s.recordNewest(o.Watch, o.Object.Namespace, o.Object.ResourceVersion)
	slot, uid := o.slotOf(o.Object), string(o.Object.UID)
	if known := s.world.Sources.At(slot); o.Role.showsSources() && known != nil && known.UID == uid && !isPast(o.Object, uid,
		known.ResourceVersion) {
		s.dropSource(slot)
		s.beginFanout(slot.Kind, slot)
	}
	if known := s.world.Copies.At(slot); o.Role.showsCopies() && known != nil && known.UID == uid && !isPast(o.Object, uid,
		known.ResourceVersion) {
		s.dropCopy(slot)
	}
}

func (l Listed) applyTo(s *State) {
	exists := make(map[copies.Slot]bool, len(l.Objects))
	for _, object := range l.Objects {
		exists[l.slotOf(object)] = true
		s.takeObject(l.Watch, object)
	}
	s.recordNewest(l.Watch, l.Namespace, l.ResourceVersion)
	// Objects that are newer than the list, which another watch or an answer has shown, stay as they are.
	sources, copied := s.world.KindIn(l.Kind, l.Namespace)
	sources = slices.DeleteFunc(sources, func(slot copies.Slot) bool {
		return forest.IsNewer(s.world.Sources.At(slot).ResourceVersion, l.ResourceVersion)
	})
	copied = slices.DeleteFunc(copied, func(slot copies.Slot) bool {
		return forest.IsNewer(s.world.Copies.At(slot).ResourceVersion, l.ResourceVersion)
	})
	s.dropMissing(l.Watch, sources, copied, exists)
}

// dropMissing drops those of sources and copied that the watch would show, but that are not in exists.
func (s *State) dropMissing(watch Watch, sources, copied []copies.Slot, exists map[copies.Slot]bool) {
	for _, slot := range sources {
		if watch.Role.showsSources() && !exists[slot] {
			s.dropSource(slot)
		}
	}
	for _, slot := range copied {
		if watch.Role.showsCopies() && !exists[slot] {
			s.dropCopy(slot)
		}
	}
}

func (s *State) dropSource(slot copies.Slot) {
	if s.world.Sources.At(slot) == nil {
		return
	}
	delete(s.sought, slot)
	s.world.DeleteSource(slot)
	delete(s.bodies, slot)
	s.queueLimits(slot.Namespace)
	s.queueKeys(sourceTask(slot), slotKey(slot)) // slotKey: the source may have been in the way of a copy from above
}

func (s *State) dropCopy(slot copies.Slot) {
	known := s.world.Copies.At(slot)
	if known == nil {
		return
	}
	delete(s.unlabelled, slot)
	delete(s.drift, slot)
	s.world.DeleteCopy(slot)
	s.queueLimits(known.From)
	s.queueKeys(slotKeys(s.world.BindingsTo(slot))...)
	s.queueKeys(slotKey(slot))
	s.endBarrier(slot.Namespace)
}

// recordNewest keeps the highest resourceVersion, of an object or of a list, that a watch of copies has shown in namespace.
func (s *State) recordNewest(watch Watch, namespace, resourceVersion string) {
	at := s.watchedPlaceOf(watch.Kind, namespace)
	if watch.Role.showsCopies() && (s.newest[at] == "" || forest.IsNewer(resourceVersion, s.newest[at])) {
		s.newest[at] = resourceVersion
	}
}

// queueLimits queues a look at the limits of the tree around namespace, if they hold sources back.
func (s *State) queueLimits(namespace string) {
	if s.world.Limits.HoldsBack(namespace) {
		s.queueKeys(limitsKey(s.world.Forest.RootOf(namespace)))
	}
}

// readVersion is what a read of one version of a source has shown: its UID and resourceVersion, and fields of its Body.
type readVersion struct {
	uid, resourceVersion, content, excluded, role string
	meta                                          uint64
	size                                          int
}

func (r BodyRead) applyTo(s *State) {
	b, known := r.Body, s.world.Sources.At(r.Source)
	if known == nil || r.Resource != s.kinds[r.Source.Kind].resource { // the source has gone, or must be read in another version
		return
	}
	s.bodies[r.Source] = readVersion{r.UID, r.ResourceVersion, b.Content, b.Excluded, b.Role, b.Meta, b.Size}
	if known.UID != r.UID || forest.IsNewer(known.ResourceVersion, r.ResourceVersion) {
		return
	}
	s.world.NoteContent(r.Source, known, b)
	if known.Excluded == "" {
		known.Excluded = b.Excluded
	}
}

// completeSource adds to a source what its last read has shown, if that read was of the same version: so no version is read twice.
func (s *State) completeSource(slot copies.Slot, source *copies.Source) {
	read, ok := s.bodies[slot]
	if !ok || read.uid != source.UID || read.resourceVersion != source.ResourceVersion {
		return
	}
	source.Content, source.Meta, source.Size, source.Role = read.content, read.meta, read.size, read.role
	if source.Excluded == "" {
		source.Excluded = read.excluded
	}
}

// takeResult takes in what the requests for one slot have shown, so that the next plan knows it before a watch shows it.
func (s *State) takeResult(slot copies.Slot, request WriteCopy, r Result, err error) {
	if apierrors.IsConflict(err) && s.unlabelled[slot] != "" {
		s.dropCopy(slot) // no watch shows the newer version, but the next POST finds it
	}
	if r.FoundDrifted && s.world.Copies.At(slot) != nil {
		s.drift[slot] = FoundAtStart
	}
	if r.Written != nil {
		s.takeWritten(slot, r.Written)
	}
	if r.Repaired {
		s.recordRepair(slot, string(r.Written.UID))
	}
	if r.Compared != nil {
		s.takeCompared(slot, r)
	}
	if r.Found != nil && s.world.Copies.At(slot) == nil {
		s.takeFound(slot, r)
	}
	known := s.world.Copies.At(slot)
	if known == nil || request.Over == nil || known.UID != request.Over.UID {
		return
	}
	switch {
	case r.Absent:
		s.dropCopy(slot)
	case r.Deleted && s.unlabelled[slot] == known.UID:
		s.dropCopy(slot) // where a finalizer still keeps the copy, the next POST finds it
	case r.Deleted: // the copy is dropped when a watch shows that it is gone
		known.Terminating = true
		s.world.PutCopy(slot, known)
	}
}

// takeFound takes in a copy of the operator's own that a read has found, unless a watch has shown since that the copy is gone.
func (s *State) takeFound(slot copies.Slot, r Result) {
	s.queueKeys(slotKey(slot))
	if !r.Unlabelled && forest.IsNewer(s.newest[s.watchedPlaceOf(slot.Kind, slot.Namespace)], r.Found.ResourceVersion) {
		return
	}
	found := s.settings.Rules.CopyOf(slot, r.Found)
	if found.Drifted = r.Unlabelled; r.Unlabelled {
		s.unlabelled[slot] = found.UID
	}
	s.world.PutCopy(slot, found)
}

// takeWritten takes in the answer to a write of the operator's own, unless a watch has shown something newer.
func (s *State) takeWritten(slot copies.Slot, meta *metav1.PartialObjectMetadata) {
	now, known := s.settings.Rules.CopyOf(slot, meta), s.world.Copies.At(slot)
	now.Digest = s.settings.Rules.Digest(meta)
	switch {
	case known != nil && known.UID == now.UID && forest.IsNewer(known.ResourceVersion, now.ResourceVersion):
		return // somebody wrote after the operator
	case known == nil && forest.IsNewer(s.newest[s.watchedPlaceOf(slot.Kind, slot.Namespace)], now.ResourceVersion):
		s.queueKeys(slotKey(slot)) // the copy has gone since, or lost its label: a POST finds out
		return
	}
	delete(s.unlabelled, slot)
	s.world.PutCopy(slot, now)
	s.world.NoteWritten(slot.At(now.From), now.Hash.Content)
}

// takeCompared records that this version of a copy was read whole, and that the present content of its source asks for no change of the
// copy, whichever managers own its fields.
func (s *State) takeCompared(slot copies.Slot, r Result) {
	known := s.world.Copies.At(slot)
	if known != nil && known.UID == r.ComparedUID && known.ResourceVersion == r.ComparedVersion {
		known.Foreign, known.Meta = false, r.Compared.Meta
		s.world.PutCopy(slot, known)
		s.world.Copies.SetCompared(slot, r.Compared.Content)
	}
}
