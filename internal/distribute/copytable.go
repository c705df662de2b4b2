package distribute

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Family names all objects of one kind and name, in any namespace: the copies of a template are one family.
type Family struct {
	Kind schema.GroupKind
	Name string
}

// Family returns the family of t's copies.
func (t *Template) Family() Family { return Family{t.Kind.GroupKind(), t.Name} }

// FamilyOf returns the family of the object in slot.
func FamilyOf(slot copies.Slot) Family { return Family{slot.Kind, slot.Name} }

// Slot returns the place of the family's object in a namespace: its kind, namespace and name.
func (of Family) Slot(namespace string) copies.Slot {
	return copies.Slot{Kind: of.Kind, Namespace: namespace, Name: of.Name}
}

// copyTable holds the copies of all distributions as they were last seen, and which distributions want copies of which
// kind and name. Its methods return the keys of the targets that must be planned again.
type copyTable struct {
	*Copies
	wantedBy map[Family]map[string]bool // distributions that want this kind and name
	newest   copies.Newest[schema.GroupKind]
	reader   *Reader
}

// newCopyTable returns an empty table. nameOf returns the string to keep for the name of a namespace.
func newCopyTable(nameOf func(namespace string) string) *copyTable {
	return &copyTable{NewCopies(nameOf), map[Family]map[string]bool{}, copies.Newest[schema.GroupKind]{}, NewReader()}
}

// addWanted records that a distribution wants copies of this kind and name.
func (t *copyTable) addWanted(of Family, name string) {
	if t.wantedBy[of] == nil {
		t.wantedBy[of] = map[string]bool{}
	}
	t.wantedBy[of][name] = true
}

// unwantCopies records that a distribution does not want copies of this kind and name any more.
func (t *copyTable) unwantCopies(of Family, name string) {
	if delete(t.wantedBy[of], name); len(t.wantedBy[of]) == 0 {
		delete(t.wantedBy, of)
	}
}

// replaceCopies makes the table hold exactly the listed copies of a kind.
func (t *copyTable) replaceCopies(l CopiesListed) (keys []Key) {
	t.newest.Record(l.Kind, l.ResourceVersion)
	there := make(map[copies.Slot]bool, len(l.Objects))
	for _, meta := range l.Objects {
		there[slotOf(l.Kind, meta)] = true
		keys = append(keys, t.takeCopy(l.Kind, meta)...)
	}
	for slot := range t.All() {
		if slot.Kind == l.Kind && !there[slot] {
			keys = append(keys, t.dropCopy(slot)...)
		}
	}
	return keys
}

// takeCopy puts a copy that a list or watch shows into the table, unless the table has a newer version.
func (t *copyTable) takeCopy(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) []Key {
	t.newest.Record(gk, meta.ResourceVersion)
	slot := slotOf(gk, meta)
	known := t.At(slot)
	if known != nil && !forest.IsNewer(meta.ResourceVersion, known.ResourceVersion) {
		return nil // the answer to the operator's own write came first, or this is of an object that was there before
	}
	known = t.atUID(slot, string(meta.UID))
	one := t.reader.Copy(slot, meta)
	if known != nil && known.Known {
		one.Known, one.Drifted = true, known.Drifted || one.Digest != known.Digest
	}
	t.Put(slot, one)
	return t.keysOf(slot, one.By)
}

// removeCopy removes a copy that a watch has reported as deleted.
func (t *copyTable) removeCopy(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) []Key {
	t.newest.Record(gk, meta.ResourceVersion)
	return t.dropUID(slotOf(gk, meta), string(meta.UID))
}

func slotOf(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) copies.Slot {
	return copies.Slot{Kind: gk, Namespace: meta.Namespace, Name: meta.Name}
}

// findWanting returns the distributions that want a copy in slot.
func (t *copyTable) findWanting(slot copies.Slot) map[string]bool { return t.wantedBy[FamilyOf(slot)] }

// atUID returns the copy in slot if it has this UID, else nil.
func (t *copyTable) atUID(slot copies.Slot, uid string) *Copy {
	if known := t.At(slot); known != nil && known.UID == uid {
		return known
	}
	return nil
}

// dropUID removes the copy in slot if it has this UID.
func (t *copyTable) dropUID(slot copies.Slot, uid string) []Key {
	if t.atUID(slot, uid) == nil {
		return nil
	}
	return t.dropCopy(slot)
}

func (t *copyTable) dropCopy(slot copies.Slot) []Key {
	by := t.At(slot).By
	t.Delete(slot)
	return t.keysOf(slot, by)
}

// keysOf returns the keys of slot's namespace for all distributions that want slot, and for by, which wrote there.
func (t *copyTable) keysOf(slot copies.Slot, by string) []Key {
	keys := []Key{{by, slot.Namespace}}
	for name := range t.findWanting(slot) {
		if name != by {
			keys = append(keys, Key{name, slot.Namespace})
		}
	}
	return keys
}

// takeWritten puts the answer to the operator's own write into the table, so that the next plan knows it before a watch
// does. known reports that the copy's content need not be read. The result is false if a watch has already shown a
// newer version, or the deletion.
func (t *copyTable) takeWritten(slot copies.Slot, meta *metav1.PartialObjectMetadata, known bool) bool {
	one, watched := t.reader.Copy(slot, meta), t.At(slot)
	one.Known = known
	switch {
	case watched != nil && watched.UID != one.UID && forest.IsNewer(watched.ResourceVersion, one.ResourceVersion):
		return false // the watch has shown another copy, which came after this one
	case watched != nil && forest.IsNewer(watched.ResourceVersion, one.ResourceVersion):
		watched.Drifted = watched.Drifted || watched.Digest != one.Digest // somebody wrote after the operator, and the watch has shown that
		t.Put(slot, watched)
		return false
	case watched == nil && t.newest.IsPast(slot.Kind, one.ResourceVersion):
		return false // the watch is past this version, so the copy has been deleted since
	}
	t.Put(slot, one)
	return true
}

// takeFound puts a copy into the table that was found in a slot where the table had none.
func (t *copyTable) takeFound(slot copies.Slot, meta *metav1.PartialObjectMetadata) []Key {
	if t.At(slot) != nil {
		return nil
	}
	one := t.reader.Copy(slot, meta)
	if !t.newest.IsPast(slot.Kind, meta.ResourceVersion) { // else the copy has gone since: the keys lead to another try
		t.Put(slot, one)
	}
	return t.keysOf(slot, one.By)
}

// changeCopy changes the copy in slot, if it is still this version of this object.
func (t *copyTable) changeCopy(slot copies.Slot, uid, resourceVersion string, change func(*Copy)) {
	if known := t.atUID(slot, uid); known != nil && known.ResourceVersion == resourceVersion {
		change(known)
		t.Put(slot, known)
	}
}

// findWriters returns the names of the distributions that have copies of the kind gk, or of any kind if gk is nil.
// Deleted distributions are among them.
func (t *copyTable) findWriters(gk *schema.GroupKind) map[string]bool {
	names := map[string]bool{}
	for slot, one := range t.All() {
		if gk == nil || slot.Kind == *gk {
			names[one.By] = true
		}
	}
	return names
}

// findLeft returns the keys of copies that a deleted distribution has left, and that must be handed back or unlocked.
func (t *copyTable) findLeft(by string) (keys []Key) {
	for slot, one := range t.All() {
		if one.By == by && PlanLeft(one) != Nothing {
			keys = append(keys, Key{by, slot.Namespace})
		}
	}
	return keys
}
