package distribution

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// copyTable holds the copies of all distributions as they were last seen, and who wants copies of which kind and name. Its methods return
// what is to be done as keys, and never do it.
type copyTable struct {
	// mu guards all below. While it is held, nothing is called but nameOf, which takes no lock: so whoever has the lock of a run may ask.
	mu       sync.Mutex
	copies   *distribute.Copies
	wantedBy map[distribute.Family]map[string]bool // distributions that want this kind and name
	lastSeen map[schema.GroupKind]string           // the highest resourceVersion that the watch of a kind's copies has brought
	reader   *distribute.Reader                    // has a lock of its own
}

// newCopyTable returns a table that holds nothing. nameOf is the string that stands for a namespace elsewhere already.
func newCopyTable(nameOf func(namespace string) string) *copyTable {
	return &copyTable{
		copies: distribute.NewCopies(nameOf), wantedBy: map[distribute.Family]map[string]bool{}, lastSeen: map[schema.GroupKind]string{},
		reader: distribute.NewReader(),
	}
}

// want notes that a distribution wants copies of this kind and name.
func (t *copyTable) want(of distribute.Family, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wantedBy[of] == nil {
		t.wantedBy[of] = map[string]bool{}
	}
	t.wantedBy[of][name] = true
}

// unwant notes that a distribution wants copies of this kind and name no longer.
func (t *copyTable) unwant(of distribute.Family, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.wantedBy[of], name); len(t.wantedBy[of]) == 0 {
		delete(t.wantedBy, of)
	}
}

// forgetSeen says that all watches of copies begin anew.
func (t *copyTable) forgetSeen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastSeen = map[schema.GroupKind]string{}
}

// replaceCopies says that exactly these copies of a kind exist.
func (t *copyTable) replaceCopies(gk schema.GroupKind, all []*metav1.PartialObjectMetadata) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	there := make(map[propagate.Slot]bool, len(all))
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

// putCopy takes in a copy that a watch has brought.
func (t *copyTable) putCopy(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.take(gk, meta)
}

// removeCopy forgets a copy that a watch has seen go.
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

func slotOf(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) propagate.Slot {
	return propagate.Slot{Kind: gk, Namespace: meta.Namespace, Name: meta.Name}
}

// noteSeen keeps the highest resourceVersion of a kind. The caller holds the lock.
func (t *copyTable) noteSeen(gk schema.GroupKind, resourceVersion string) {
	if seen := t.lastSeen[gk]; seen == "" || view.Newer(resourceVersion, seen) {
		t.lastSeen[gk] = resourceVersion
	}
}

// take takes in what a watch shows. The caller holds the lock.
func (t *copyTable) take(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) []key {
	t.noteSeen(gk, meta.ResourceVersion)
	slot := slotOf(gk, meta)
	known := t.copies.At(slot)
	if known != nil && known.UID != string(meta.UID) {
		known = nil
	}
	if known != nil && !view.Newer(meta.ResourceVersion, known.ResourceVersion) {
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

// drop takes a copy off the table. The caller holds the lock.
func (t *copyTable) drop(slot propagate.Slot) []key {
	by := t.copies.At(slot).By
	t.copies.Delete(slot)
	return t.keysOf(slot, by)
}

// keysOf are the keys of everybody who wants slot, and of who wrote there. The caller holds the lock.
func (t *copyTable) keysOf(slot propagate.Slot, by string) []key {
	keys := []key{{by, slot.Namespace}}
	for name := range t.wantedBy[distribute.FamilyOf(slot)] {
		if name != by {
			keys = append(keys, key{name, slot.Namespace})
		}
	}
	return keys
}

// noteAnswer takes in the answer to a write of our own, so that the next plan knows of it before the watch brings it. freed are the
// distributions for which nothing stands in the way at slot any more, because the copy does.
func (t *copyTable) noteAnswer(slot propagate.Slot, meta *metav1.PartialObjectMetadata) (freed []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, known := t.reader.Copy(slot, meta), t.copies.At(slot)
	one.Known = true
	switch {
	case known != nil && known.UID == one.UID && view.Newer(known.ResourceVersion, one.ResourceVersion):
		known.Drifted = known.Drifted || known.Digest != one.Digest // somebody wrote after us, and the watch has told
		t.copies.Put(slot, known)
		return nil
	case known == nil && view.Newer(t.lastSeen[slot.Kind], one.ResourceVersion):
		return nil // the watch has been there already, and has seen it go
	}
	t.copies.Put(slot, one)
	for name := range t.wantedBy[distribute.FamilyOf(slot)] {
		freed = append(freed, name)
	}
	return freed
}

// noteProbed takes in a copy that was found where the table had none.
func (t *copyTable) noteProbed(slot propagate.Slot, meta *metav1.PartialObjectMetadata) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.copies.At(slot) != nil {
		return nil
	}
	one := t.reader.Copy(slot, meta)
	t.copies.Put(slot, one)
	return t.keysOf(slot, one.By)
}

// noteDeleted says that the API server has taken a DELETE of a copy: the watch tells when it is gone.
func (t *copyTable) noteDeleted(slot propagate.Slot, uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.copies.At(slot); known != nil && known.UID == uid {
		known.Terminating = true
		t.copies.Put(slot, known)
	}
}

// noteAbsent drops a copy of which the API server says that it is not there, or ours no longer.
func (t *copyTable) noteAbsent(slot propagate.Slot, uid string) []key {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.copies.At(slot); known != nil && known.UID == uid {
		return t.drop(slot)
	}
	return nil
}

// noteInspected says whether this version of a copy, which was read whole, holds what it should.
func (t *copyTable) noteInspected(slot propagate.Slot, uid, resourceVersion string, holds bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.copies.At(slot); known != nil && known.UID == uid && known.ResourceVersion == resourceVersion {
		known.Known, known.Drifted = true, known.Drifted || !holds
		t.copies.Put(slot, known)
	}
}

// forgetInspected has a copy planned as Inspect again.
func (t *copyTable) forgetInspected(slot propagate.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.copies.At(slot); one != nil && !one.Drifted {
		one.Known = false
		t.copies.Put(slot, one)
	}
}

// find is the copy at slot; nil if none stands there.
func (t *copyTable) find(slot propagate.Slot) *distribute.Copy {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.copies.At(slot)
}

// findFamily are the copies of one kind and name at this moment, by namespace.
func (t *copyTable) findFamily(of distribute.Family) map[string]*distribute.Copy {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]*distribute.Copy{}
	for namespace, one := range t.copies.Of(of) {
		all[namespace] = one
	}
	return all
}

// findIn are the copies that a distribution has in a namespace, of any kind and name.
func (t *copyTable) findIn(namespace, by string) map[propagate.Slot]*distribute.Copy {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[propagate.Slot]*distribute.Copy{}
	for slot, one := range t.copies.In(namespace) {
		if one.By == by {
			all[slot] = one
		}
	}
	return all
}

// findWriters are the names of the distributions that have copies, of one kind where gk is not nil.
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

// findFarewells are the keys of copies that a distribution, which is gone, has left to be let go of.
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
