package propagation

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// tables hold the forest, the sources and the copies as they were last seen. Their methods change what is there; what only asks is a method of
// facts. No method sends or queues anything: a method returns the work that follows, as keys or effects.
type tables struct {
	// mu guards all contents. Only methods of tables and of facts take it, in this file alone. It is the innermost lock: while it is held, no
	// method sends a request, or calls anything that takes another lock than that of the bodies.
	mu sync.Mutex
	in contents
}

func newTables(f *forest.Snapshot, rules propagate.Rules, b *bodies) *tables {
	return &tables{in: contents{
		world: propagate.NewWorld(f), rules: rules, bodies: b, lastSeen: map[stream]string{},
	}}
}

// setForest takes a new snapshot of the forest. It returns the keys of every namespace that the change concerns, of missing sources there
// whose loss is to be verified again, and of trees whose limits hold copies back.
func (t *tables) setForest(c view.Change) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.setForest(c)
}

// setKind says how a kind is propagated, and whether all objects of the kind are known. Nothing is planned for a kind that is not synced.
func (t *tables) setKind(gk schema.GroupKind, mode propagate.KindMode, synced bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.world.SetKind(gk, mode, synced)
}

// setNarrow marks a kind as narrow; the kind is not seen anywhere yet.
func (t *tables) setNarrow(gk schema.GroupKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.world.Sights.SetNarrow(gk)
}

// setSight notes what a watch shows of namespace. When namespace has come into sight, setSight returns the keys of all namespaces and sources
// whose plans were made without it; for a kind that is not synced it returns nil.
func (t *tables) setSight(o origin, namespace string, now propagate.Sight) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	return setSight(t.in.world, o, namespace, now)
}

// putObject takes in an object that a watch has brought.
func (t *tables) putObject(o origin, meta *metav1.PartialObjectMetadata) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.put(o, meta)
}

// removeObject forgets an object that a watch has seen go.
func (t *tables) removeObject(o origin, meta *metav1.PartialObjectMetadata) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.remove(o, meta)
}

// replaceObjects says that exactly these objects exist of what a watch brings.
func (t *tables) replaceObjects(o origin, objects []*metav1.PartialObjectMetadata) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.replace(o, objects, func() (sources, copies []propagate.Slot) {
		return t.in.world.KindIn(o.kind.GroupKind(), propagate.Everywhere)
	})
}

// replaceObjectsIn takes in a complete list: of what a watch brings from namespace, exactly these objects existed at resourceVersion. Known
// objects with a newer resourceVersion, which another watch has shown, stay as they are.
func (t *tables) replaceObjectsIn(o origin, namespace, resourceVersion string, objects []*metav1.PartialObjectMetadata) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.replaceIn(o, namespace, resourceVersion, objects)
}

// forgetElsewhere is called when a watch of the whole cluster has ended. It drops the objects from namespaces that are not followed: no other
// watch would show when such an object goes. Nothing is queued, because the objects may still exist.
func (t *tables) forgetElsewhere(o origin, isFollowed func(namespace string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.forgetElsewhere(o, isFollowed)
}

// forgetNamespace drops what a watch has brought from a namespace that the watch no longer shows. Its effects hold keys only where the
// namespace itself is gone; otherwise the dropped objects may still exist.
func (t *tables) forgetNamespace(o origin, namespace string) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.forgetNamespace(o, namespace)
}

// planWithCopy returns what to do at slot now, and the copy that stands there; nil if there is none. Where limits hold the copy back,
// planWithCopy notes that under the same lock as the plan: limits that were released in between would never queue the slot again.
func (t *tables) planWithCopy(slot propagate.Slot) (propagate.Action, *propagate.Copy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	action := t.in.world.Plan(slot)
	if action.Reason == v1alpha1.ReasonLimitExceeded {
		t.in.world.Limits.NoteHeld(action.Source)
	}
	return action, t.in.world.Copies.At(slot)
}

// reallot looks again at what the limits of the tree of root hold back: see propagate.Allotter. troubles say why, of those that are held.
func (t *tables) reallot(root string) (released, held []propagate.Slot, troubles map[propagate.Slot]propagate.Trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return reallot(t.in.world.Limits, root)
}

// noteLoss keeps what a live look at a missing source has shown.
func (t *tables) noteLoss(slot propagate.Slot, loss propagate.Loss) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.world.SetLoss(slot, loss)
}

// noteRead completes a source with what its body shows, unless the source or the rules have changed since the body was read.
func (t *tables) noteRead(slot propagate.Slot, read body) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.noteRead(slot, read)
}

// noteAnswer takes in the answer to a write of our own, so that the next plan knows of it before the watch brings it.
func (t *tables) noteAnswer(slot propagate.Slot, meta *metav1.PartialObjectMetadata) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.noteAnswer(slot, meta)
}

// noteFound takes in a copy of ours that a live look has found where the watch shows none. unlabelled says that its label
// was missing, so that the PUT that follows puts it back.
func (t *tables) noteFound(slot propagate.Slot, meta *metav1.PartialObjectMetadata, unlabelled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.noteFound(slot, meta, unlabelled)
}

// noteDeleted marks a copy as terminating, because the API server has accepted our DELETE. The tables drop the copy when the watch shows that
// it is gone.
func (t *tables) noteDeleted(slot propagate.Slot, uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	noteDeleted(t.in.world, slot, uid)
}

// noteAbsent drops a copy of which the API server says that it doesn't exist.
func (t *tables) noteAbsent(slot propagate.Slot, uid string) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.noteAbsent(slot, uid)
}

// noteCompared notes that this version of a copy was read whole, and that the present content of its source asks for no change of the copy,
// whichever managers own its fields.
func (t *tables) noteCompared(slot propagate.Slot, uid, resourceVersion string, source body) {
	t.mu.Lock()
	defer t.mu.Unlock()
	noteCompared(t.in.world, slot, uid, resourceVersion, source)
}

// markDrifted says that this version of a copy is not what its source says. It returns false if something has happened to
// the copy since.
func (t *tables) markDrifted(slot propagate.Slot, uid, resourceVersion string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return markDrifted(t.in.world, slot, uid, resourceVersion)
}

// facts answer questions about what is in the tables, and change nothing there.
type facts struct{ of *tables }

// forest is the snapshot that plans are made by.
func (f facts) forest() *forest.Snapshot {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.Forest
}

// rules are the rules of the configuration.
func (f facts) rules() propagate.Rules { return f.of.in.rules }

// plan says what to do at slot now.
func (f facts) plan(slot propagate.Slot) propagate.Action {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.Plan(slot)
}

// attributesOf returns where a key waits in the queue.
func (f facts) attributesOf(k key) fairqueue.Attributes {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return attributesOf(f.of.in.world, k)
}

// slotsIn are the slots in namespace that a plan may concern.
func (f facts) slotsIn(namespace string) []propagate.Slot {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.SlotsIn(namespace)
}

// slotsOf are the slots that the source at slot may concern.
func (f facts) slotsOf(slot propagate.Slot) []propagate.Slot {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.SlotsOf(slot)
}

// keysOf are the keys of all sources and copies of a kind.
func (f facts) keysOf(gk schema.GroupKind) []key {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	sources, copies := f.of.in.world.KindIn(gk, propagate.Everywhere)
	return append(keysFor(sources, sourceKey), slotKeys(copies)...)
}

// bindingsTo are the slots of the copied RoleBindings beside the copy of a Role that name this Role.
func (f facts) bindingsTo(role propagate.Slot) []propagate.Slot {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.BindingsTo(role)
}

// countObjects are the numbers of sources and of copies of ours.
func (f facts) countObjects(gk schema.GroupKind) (sources, copies int) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.Len(gk)
}

// source returns a duplicate of the Source at slot, which the caller may keep; nil if no source stands there.
func (f facts) source(slot propagate.Slot) *propagate.Source {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if known := f.of.in.world.Sources.At(slot); known != nil {
		s := *known
		return &s
	}
	return nil
}

// seesSource says whether the operator can see the place of the source at slot: a source that is missing there doesn't exist.
func (f facts) seesSource(slot propagate.Slot) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.SeesSource(slot)
}

// lossToVerify says whether copies stand whose source at slot is missing, and nobody has looked for it yet.
func (f facts) lossToVerify(slot propagate.Slot) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	w := f.of.in.world
	return w.Sources.At(slot) == nil && w.Copies.HasCopyOf(slot) && w.Loss(slot) == propagate.Unverified
}

// hasCopyOf says whether copies of the source at slot stand anywhere.
func (f facts) hasCopyOf(slot propagate.Slot) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.Copies.HasCopyOf(slot)
}

// copyToCompare is the copy at slot if this version of it is the latest and the plan sees nothing to do there; else nil.
func (f facts) copyToCompare(slot propagate.Slot, uid, resourceVersion string) *propagate.Copy {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return unchanged(f.of.in.world, slot, uid, resourceVersion)
}

// missingRails are the slots in namespace where copies that give no rights are still to be made.
func (f facts) missingRails(namespace string) []propagate.Slot {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.MissingRails(namespace)
}

// missesRail says whether slot is one of the missingRails.
func (f facts) missesRail(slot propagate.Slot) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.MissesRail(slot)
}

// awaitsSight says whether rails of namespace may exist that were not listed yet.
func (f facts) awaitsSight(namespace string) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.AwaitsSight(namespace)
}

// holdsRightsFrom says whether a RoleBinding stands in namespace that was copied from the namespace called from.
func (f facts) holdsRightsFrom(namespace, from string) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.Copies.GiveRightsFrom(namespace, from)
}

// holdsCopies says whether copies stand in namespace that go when it leaves the forest.
func (f facts) holdsCopies(namespace string) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.Copies.HasUpdatedIn(namespace)
}

// leaving are the copies in namespace that are to be removed, or are being removed.
func (f facts) leaving(namespace string) map[propagate.Slot]*propagate.Copy {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return leaving(f.of.in.world, namespace)
}

// newestIn is the highest resourceVersion of a copy in namespace; "" where there is none.
func (f facts) newestIn(namespace string) string {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return newestIn(f.of.in.world, namespace)
}

// counts says whether the tree around slot has limits that count the copies of the source at from.
func (f facts) counts(slot, from propagate.Slot) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	source := f.of.in.world.Sources.At(from)
	return source != nil && !source.Access && propagate.IsLimited(f.of.in.world.Forest, slot.Namespace)
}

// holdsBack says whether limits hold something back in the tree around namespace.
func (f facts) holdsBack(namespace string) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.Limits.HoldsBack(namespace)
}

// heldAround are the sources that limits hold back, of namespace or, where that is a root, of its tree.
func (f facts) heldAround(namespace string) []propagate.Trouble {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.Limits.HeldAround(namespace)
}

// countHeld are the numbers of copies that limits hold back, by group and kind.
func (f facts) countHeld() map[string]map[string]int {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.of.in.world.Limits.CountHeld()
}
