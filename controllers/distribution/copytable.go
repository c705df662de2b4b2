package distribution

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
)

// copyTable holds the copies of all distributions as they were last seen, and which distributions want copies of which kind and
// name. Its methods return the keys of targets that must be planned again; their callers queue these.
type copyTable struct {
	// mu guards the fields below. While it is held, only nameOf is called, which takes no lock; so a caller may hold the lock of a run.
	mu       sync.Mutex
	copies   *distribute.Copies
	wantedBy map[distribute.Family]map[string]bool // distributions that want this kind and name
	lastSeen map[schema.GroupKind]string           // the highest resourceVersion that the watch of a kind's copies has brought
	reader   *distribute.Reader                    // has a lock of its own
}

// newCopyTable returns an empty table. nameOf returns the string for a namespace that is in memory elsewhere already.
func newCopyTable(nameOf func(namespace string) string) *copyTable {
	return &copyTable{
		copies: distribute.NewCopies(nameOf), wantedBy: map[distribute.Family]map[string]bool{}, lastSeen: map[schema.GroupKind]string{},
		reader: distribute.NewReader(),
	}
}

// want records that a distribution wants copies of this kind and name.
func (t *copyTable) want(of distribute.Family, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wantedBy[of] == nil {
		t.wantedBy[of] = map[string]bool{}
	}
	t.wantedBy[of][name] = true
}

// unwant records that a distribution doesn't want copies of this kind and name any more.
func (t *copyTable) unwant(of distribute.Family, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.wantedBy[of], name); len(t.wantedBy[of]) == 0 {
		delete(t.wantedBy, of)
	}
}

// replaceCopies makes the table hold exactly these copies of a kind.
func (t *copyTable) replaceCopies(gk schema.GroupKind, all []*metav1.PartialObjectMetadata) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	there := make(map[copies.Slot]bool, len(all))
	var keys []key
	for _, meta := range all {
		there[slotOf(gk, meta)] = true
		keys = append(keys, t.take(gk, meta)...)
	}
	for slot := range t.copies.All() {
		if slot.Kind == gk && !there[slot] {
			keys = append(keys, t.drop(slot)...)
		}
	}
	return keys
}

// putCopy puts a copy that a watch has brought into the table.
func (t *copyTable) putCopy(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.take(gk, meta)
}

// removeCopy removes a copy that a watch has reported as deleted.
func (t *copyTable) removeCopy(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteSeen(gk, meta.ResourceVersion)
	slot := slotOf(gk, meta)
	if known := t.copies.At(slot); known != nil && known.UID == string(meta.UID) {
		return t.drop(slot)
	}
	return nil
}

func slotOf(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) copies.Slot {
	return copies.Slot{Kind: gk, Namespace: meta.Namespace, Name: meta.Name}
}

// noteSeen keeps the highest resourceVersion of a kind. The caller holds the lock.
func (t *copyTable) noteSeen(gk schema.GroupKind, resourceVersion string) {
	if seen := t.lastSeen[gk]; seen == "" || forest.IsNewer(resourceVersion, seen) {
		t.lastSeen[gk] = resourceVersion
	}
}

// take puts a copy that a list or watch shows into the table, unless the table has a newer version. The caller holds the lock.
func (t *copyTable) take(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) []key {
	t.noteSeen(gk, meta.ResourceVersion)
	slot := slotOf(gk, meta)
	known := t.copies.At(slot)
	if known != nil && known.UID != string(meta.UID) {
		known = nil
	}
	if known != nil && !forest.IsNewer(meta.ResourceVersion, known.ResourceVersion) {
		return nil // our own write's answer came first
	}
	one := t.reader.Copy(slot, meta)
	if known != nil && known.Known {
		one.Known = true
		one.Drifted = known.Drifted || one.Digest != known.Digest
	}
	t.copies.Put(slot, one)
	return t.keysOf(slot, one.By)
}

// drop removes a copy from the table. The caller holds the lock.
func (t *copyTable) drop(slot copies.Slot) []key {
	by := t.copies.At(slot).By
	t.copies.Delete(slot)
	return t.keysOf(slot, by)
}

// keysOf returns the keys of slot's namespace for all distributions that want slot, and for by, which wrote there. The caller holds
// the lock.
func (t *copyTable) keysOf(slot copies.Slot, by string) []key {
	keys := []key{{by, slot.Namespace}}
	for name := range t.wantedBy[distribute.FamilyOf(slot)] {
		if name != by {
			keys = append(keys, key{name, slot.Namespace})
		}
	}
	return keys
}

// noteAnswer puts the answer to the operator's own write into the table, so that the next plan uses it before the watch brings it.
// known says that the copy's content need not be read. It returns the distributions that want slot: since the copy is there, they have
// no obstacle at slot any more.
func (t *copyTable) noteAnswer(slot copies.Slot, meta *metav1.PartialObjectMetadata, known bool) (freed []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, watched := t.reader.Copy(slot, meta), t.copies.At(slot)
	one.Known = known
	switch {
	case watched != nil && watched.UID == one.UID && forest.IsNewer(watched.ResourceVersion, one.ResourceVersion):
		watched.Drifted = watched.Drifted || watched.Digest != one.Digest // somebody wrote after the operator, and the watch has brought that
		t.copies.Put(slot, watched)
		return nil
	case watched == nil && forest.IsNewer(t.lastSeen[slot.Kind], one.ResourceVersion):
		return nil // the watch is past this version, so the copy has been deleted since
	}
	t.copies.Put(slot, one)
	for name := range t.wantedBy[distribute.FamilyOf(slot)] {
		freed = append(freed, name)
	}
	return freed
}

// noteProbed puts a copy into the table that was found in a slot where the table had none.
func (t *copyTable) noteProbed(slot copies.Slot, meta *metav1.PartialObjectMetadata) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.copies.At(slot) != nil {
		return nil
	}
	one := t.reader.Copy(slot, meta)
	t.copies.Put(slot, one)
	return t.keysOf(slot, one.By)
}

// noteDeleted marks a copy as terminating after the API server has accepted its DELETE. The watch removes it later.
func (t *copyTable) noteDeleted(slot copies.Slot, uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.copies.At(slot); known != nil && known.UID == uid {
		known.Terminating = true
		t.copies.Put(slot, known)
	}
}

// noteAbsent removes a copy, if it has this UID, after the API server has said that it is gone or not a copy any more.
func (t *copyTable) noteAbsent(slot copies.Slot, uid string) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.copies.At(slot); known != nil && known.UID == uid {
		return t.drop(slot)
	}
	return nil
}

// noteInspected records whether this version of a copy, which was read whole, has the content that it should have.
func (t *copyTable) noteInspected(slot copies.Slot, uid, resourceVersion string, holds bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.copies.At(slot); known != nil && known.UID == uid && known.ResourceVersion == resourceVersion {
		known.Known, known.Drifted = true, known.Drifted || !holds
		t.copies.Put(slot, known)
	}
}

// forgetInspected makes the next plan of a copy read the whole object again (Inspect), unless it is known to have drifted.
func (t *copyTable) forgetInspected(slot copies.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.copies.At(slot); one != nil && !one.Drifted {
		one.Known = false
		t.copies.Put(slot, one)
	}
}

// find returns the copy in slot; nil if there is none.
func (t *copyTable) find(slot copies.Slot) *distribute.Copy {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.copies.At(slot)
}

// findFamily returns the copies of one kind and name, by namespace.
func (t *copyTable) findFamily(of distribute.Family) map[string]*distribute.Copy {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]*distribute.Copy{}
	for namespace, one := range t.copies.Of(of) {
		all[namespace] = one
	}
	return all
}

// findIn returns the copies that a distribution has in a namespace, of any kind and name.
func (t *copyTable) findIn(namespace, by string) map[copies.Slot]*distribute.Copy {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[copies.Slot]*distribute.Copy{}
	for slot, one := range t.copies.In(namespace) {
		if one.By == by {
			all[slot] = one
		}
	}
	return all
}

// findWriters returns the names of the distributions that have copies of the kind gk, or of any kind if gk is nil. Deleted
// distributions are among them.
func (t *copyTable) findWriters(gk *schema.GroupKind) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := map[string]bool{}
	for slot, one := range t.copies.All() {
		if gk == nil || slot.Kind == *gk {
			names[one.By] = true
		}
	}
	return names
}

// findFarewells returns the keys of copies that a deleted distribution has left, and that must be deleted, handed back or unlocked.
func (t *copyTable) findFarewells(by string) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys []key
	for slot, one := range t.copies.All() {
		if one.By == by && distribute.Farewell(one) != distribute.Nothing {
			keys = append(keys, key{by, slot.Namespace})
		}
	}
	return keys
}
