package propagation

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// tables hold the forest, the sources and the copies as they were last seen, and answer what a slot needs. Their methods never send or queue
// anything: a method returns the work that follows, as keys or effects.
type tables struct {
	// mu guards all contents. Only methods of tables take it, here and in limits.go, queue.go and sight.go. It is the innermost lock: no
	// method sends a request, or calls anything that takes another lock than that of the bodies, while it is held.
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
	t.in.world.Forest = c.New
	var keys []key
	for _, namespace := range c.Namespaces {
		keys = append(keys, namespaceKey(namespace))
		for _, slot := range t.in.world.Doubtful(namespace) {
			t.in.world.SetLoss(slot, propagate.Unverified)
			keys = append(keys, sourceKey(slot))
		}
	}
	for _, root := range t.in.world.Limits.RootsHeldBack() {
		keys = append(keys, tenantKey(root))
	}
	return keys
}

// follows says whether the tables have taken this snapshot.
func (t *tables) follows(f *forest.Snapshot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Forest == f
}

// reset forgets all objects of these kinds, and puts other rules in force. What was read by the old rules counts no more.
func (t *tables) reset(rules propagate.Rules, kinds []schema.GroupKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, gk := range kinds {
		t.in.world.ForgetKind(gk)
	}
	t.in.rules = rules
	t.in.generation++
	t.in.bodies.clear(t.in.generation)
}

// currentRules are the rules in force, and their generation.
func (t *tables) currentRules() (propagate.Rules, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.rules, t.in.generation
}

// setKind says how a kind is propagated, and whether all objects of the kind are known. Nothing is planned for a kind that is not synced.
func (t *tables) setKind(gk schema.GroupKind, mode propagate.KindMode, synced bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.world.SetKind(gk, mode, synced)
}

// keysOf are the keys of all sources and copies of a kind.
func (t *tables) keysOf(gk schema.GroupKind) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	sources, copies := t.in.world.KindIn(gk, propagate.Everywhere)
	keys := make([]key, 0, len(sources)+len(copies))
	for _, slot := range sources {
		keys = append(keys, sourceKey(slot))
	}
	return append(keys, slotKeys(copies)...)
}

// countObjects are the numbers of sources and of copies of ours.
func (t *tables) countObjects(gk schema.GroupKind) (sources, copies int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Len(gk)
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

// plan says what to do at slot now.
func (t *tables) plan(slot propagate.Slot) propagate.Action {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Plan(slot)
}

// isSourceOf says whether objects of the namespace called from reach namespace, by the forest that the tables plan by.
func (t *tables) isSourceOf(from, namespace string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	sources, ok := t.in.world.Forest.Sources(namespace)
	return ok && sources.Has(from)
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

// slotsIn are the slots in namespace that a plan may concern.
func (t *tables) slotsIn(namespace string) []propagate.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.SlotsIn(namespace)
}

// slotsOf are the slots that the source at slot may concern.
func (t *tables) slotsOf(slot propagate.Slot) []propagate.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.SlotsOf(slot)
}

// missingRails are the slots in namespace where copies that give no rights are still to be made.
func (t *tables) missingRails(namespace string) []propagate.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.MissingRails(namespace)
}

// missesRail says whether slot is one of the missingRails.
func (t *tables) missesRail(slot propagate.Slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.MissesRail(slot)
}

// holdsRightsFrom says whether a RoleBinding stands in namespace that was copied from the namespace called from.
func (t *tables) holdsRightsFrom(namespace, from string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Copies.GiveRightsFrom(namespace, from)
}

// leaving are the copies in namespace that are to be removed, or are being removed.
func (t *tables) leaving(namespace string) map[propagate.Slot]*propagate.Copy {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[propagate.Slot]*propagate.Copy{}
	for _, slot := range t.in.world.SlotsIn(namespace) {
		c := t.in.world.Copies.At(slot)
		if c != nil && c.Ours && (c.Terminating || t.in.world.Plan(slot).Verb == propagate.Delete) {
			all[slot] = c
		}
	}
	return all
}

// newestIn is the highest resourceVersion of a copy in namespace; "" where there is none.
func (t *tables) newestIn(namespace string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	newest := ""
	for _, slot := range t.in.world.SlotsIn(namespace) {
		if c := t.in.world.Copies.At(slot); c != nil && (newest == "" || view.Newer(c.ResourceVersion, newest)) {
			newest = c.ResourceVersion
		}
	}
	return newest
}

// source returns a duplicate of the Source at slot, which the caller may keep; nil if no source stands there.
func (t *tables) source(slot propagate.Slot) *propagate.Source {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.in.world.Sources.At(slot); known != nil {
		s := *known
		return &s
	}
	return nil
}

// lossToVerify says whether copies stand whose source at slot is missing, and nobody has looked for it yet.
func (t *tables) lossToVerify(slot propagate.Slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.world.Sources.At(slot) == nil && t.in.world.Copies.HasCopyOf(slot) && t.in.world.Loss(slot) == propagate.Unverified
}

// noteLoss keeps what a live look at a missing source has shown.
func (t *tables) noteLoss(slot propagate.Slot, loss propagate.Loss) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.world.SetLoss(slot, loss)
}

// noteRead completes a source with what its body shows, unless the source or the rules have changed since the body was read.
func (t *tables) noteRead(slot propagate.Slot, read body, generation int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.in.world.Sources.At(slot)
	if generation != t.in.generation || s == nil || s.UID != read.uid || view.Newer(s.ResourceVersion, read.resourceVersion) {
		return
	}
	t.in.world.NoteContent(slot, s, read.Content, read.Meta, read.Size)
	if s.Excluded == "" {
		s.Excluded = read.Excluded
	}
}

// noteAnswer takes in the answer to a write of our own, so that the next plan knows of it before the watch brings it.
func (t *tables) noteAnswer(slot propagate.Slot, meta *metav1.PartialObjectMetadata) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, known := t.in.rules.CopyOf(slot, meta), t.in.world.Copies.At(slot)
	c.Digest = t.in.rules.Digest(meta)
	switch {
	case known != nil && known.UID == c.UID && view.Newer(known.ResourceVersion, c.ResourceVersion):
		return // somebody wrote after us, and the watch has brought it
	case known == nil && view.Newer(t.in.lastSeen[t.in.streamOf(slot.Kind, slot.Namespace)], c.ResourceVersion):
		return // the watch is past this write, and has shown that the copy is gone
	}
	t.in.world.PutCopy(slot, c)
	t.in.world.NoteWritten(slot.At(c.From), c.Hash.Content)
}

// noteFound takes in a copy of ours that a live look has found where the watch shows none. unlabelled says that its label
// was missing, so that the PUT that follows puts it back.
func (t *tables) noteFound(slot propagate.Slot, meta *metav1.PartialObjectMetadata, unlabelled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.in.world.Copies.At(slot) != nil {
		return
	}
	c := t.in.rules.CopyOf(slot, meta)
	c.Drifted = unlabelled
	t.in.world.PutCopy(slot, c)
}

// noteDeleted marks a copy as terminating, because the API server has accepted our DELETE. The tables drop the copy when the watch shows that
// it is gone.
func (t *tables) noteDeleted(slot propagate.Slot, uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.in.world.Copies.At(slot); c != nil && c.UID == uid {
		c.Terminating = true
		t.in.world.PutCopy(slot, c)
	}
}

// noteAbsent drops a copy of which the API server says that it doesn't exist.
func (t *tables) noteAbsent(slot propagate.Slot, uid string) effects {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.in.world.Copies.At(slot); known == nil || known.UID != uid {
		return effects{}
	}
	return t.in.dropCopy(slot)
}

// noteCompared notes that this version of a copy was read whole, and that the present content of its source asks for no change of the copy,
// whichever managers own its fields.
func (t *tables) noteCompared(slot propagate.Slot, uid, resourceVersion string, source body) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.in.world.Copies.At(slot); c != nil && c.UID == uid && c.ResourceVersion == resourceVersion {
		c.Foreign, c.Meta = false, source.Meta
		t.in.world.PutCopy(slot, c)
		t.in.world.Copies.SetCompared(slot, source.Content)
	}
}

// copyToCompare is the copy at slot if this version of it is the latest and the plan sees nothing to do there; else nil.
func (t *tables) copyToCompare(slot propagate.Slot, uid, resourceVersion string) *propagate.Copy {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.in.unchanged(slot, uid, resourceVersion)
}

// markDrifted says that this version of a copy is not what its source says. It returns false if something has happened to
// the copy since.
func (t *tables) markDrifted(slot propagate.Slot, uid, resourceVersion string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.in.unchanged(slot, uid, resourceVersion)
	if c == nil {
		return false
	}
	c.Drifted = true
	t.in.world.PutCopy(slot, c)
	return true
}

// waitsForRemoval says whether an action is held back because copies must go before.
func waitsForRemoval(action propagate.Action) bool {
	return action.Reason == v1alpha1.ReasonWaitingForRemoval
}
