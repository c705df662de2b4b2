package distribute

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/mirror"
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
	kinds    map[schema.GroupKind]mirrored
	reader   *Reader
}

// newCopyTable returns an empty table. nameOf returns the string to keep for the name of a namespace.
func newCopyTable(nameOf func(namespace string) string) *copyTable {
	return &copyTable{NewCopies(nameOf), map[Family]map[string]bool{}, map[schema.GroupKind]mirrored{}, NewReader()}
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

// mirrored decides what of that which watches and answers show of a kind's copies counts.
type mirrored = *mirror.Table[shownCopy, Copy]

// shownCopy is a copy as a watch shows it, or as the answer to a write of the operator's own has it: then with what is kept of it.
type shownCopy struct {
	*metav1.PartialObjectMetadata
	written *Copy
}

func (t *copyTable) ofKind(gk schema.GroupKind) mirrored {
	if t.kinds[gk] == nil {
		t.kinds[gk] = mirror.NewOver(copyStore{t.Copies, gk}, func(s shownCopy) Copy {
			if s.written != nil {
				return *s.written
			}
			return *t.copyOf(slotOf(gk, s.PartialObjectMetadata), s.PartialObjectMetadata)
		})
	}
	return t.kinds[gk]
}

// copyOf returns what is kept of a copy that a watch shows.
func (t *copyTable) copyOf(slot copies.Slot, meta *metav1.PartialObjectMetadata) *Copy {
	one, known := t.reader.Copy(slot, meta), t.At(slot)
	if known != nil && known.UID == one.UID && known.Known {
		one.Known, one.Drifted = true, known.Drifted || one.Digest != known.Digest
	}
	return one
}

// begin is called before a write of a slot is requested.
func (t *copyTable) begin(slot copies.Slot) *mirror.Flight {
	return t.ofKind(slot.Kind).Begin(slot.NamespacedName())
}

// forgetNamespace is called when a namespace is gone, or was made anew.
func (t *copyTable) forgetNamespace(namespace string) {
	for _, of := range t.kinds {
		of.ForgetNamespace(namespace, "")
	}
}

// replaceCopies makes the table hold exactly the listed copies of a kind.
func (t *copyTable) replaceCopies(l CopiesListed) (keys []Key) {
	all := make([]shownCopy, 0, len(l.Objects))
	for _, meta := range l.Objects {
		all = append(all, shownCopy{meta, nil})
	}
	for _, c := range t.ofKind(l.Kind).List(mirror.Everywhere, l.ResourceVersion, all) {
		keys = append(keys, t.keysOfChange(l.Kind, c, true)...)
	}
	return keys
}

// takeCopy puts a copy that a watch shows into the table, unless the table has a newer version.
func (t *copyTable) takeCopy(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) []Key {
	c, changed := t.ofKind(gk).Show(shownCopy{meta, nil})
	return t.keysOfChange(gk, c, changed)
}

// removeCopy removes a copy that a watch has reported as deleted.
func (t *copyTable) removeCopy(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) []Key {
	c, changed := t.ofKind(gk).End(shownCopy{meta, nil})
	return t.keysOfChange(gk, c, changed)
}

// keysOfChange returns the keys of the targets that a change concerns; none if nothing has changed.
func (t *copyTable) keysOfChange(gk schema.GroupKind, c mirror.Change[Copy], changed bool) []Key {
	slot := copies.SlotOf(gk, c.Place)
	switch {
	case !changed:
		return nil
	case c.Is == nil:
		return t.keysOf(slot, c.Was.By)
	}
	return t.keysOf(slot, c.Is.By)
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

// takeAbsent takes in that the copy for which a write was planned is gone.
func (t *copyTable) takeAbsent(slot copies.Slot, flight *mirror.Flight) []Key {
	c, changed := t.ofKind(slot.Kind).Absent(flight)
	return t.keysOfChange(slot.Kind, c, changed)
}

// takeReleased takes in that the copy for which a write was planned is no copy any more.
func (t *copyTable) takeReleased(slot copies.Slot, flight *mirror.Flight) []Key {
	c, changed := t.ofKind(slot.Kind).Deleted(flight)
	return t.keysOfChange(slot.Kind, c, changed)
}

// endFlight ends a request whose answer shows no copy.
func (t *copyTable) endFlight(slot copies.Slot, flight *mirror.Flight) {
	t.ofKind(slot.Kind).Refused(flight)
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
func (t *copyTable) takeWritten(slot copies.Slot, flight *mirror.Flight, meta *metav1.PartialObjectMetadata, known bool) bool {
	of, one := t.ofKind(slot.Kind), t.reader.Copy(slot, meta)
	one.Known = known
	_, changed := of.Answered(flight, shownCopy{meta, one})
	switch now := of.Mark(slot.NamespacedName()); {
	case changed:
	case now == mirror.MarkOf(meta): // the watch was faster, but does not know what was written
		t.Put(slot, one)
	case now.UID == meta.UID: // somebody wrote after the operator, and the watch has shown that
		watched := t.At(slot)
		watched.Drifted = watched.Drifted || watched.Digest != one.Digest
		t.Put(slot, watched)
		return false
	default:
		return false
	}
	return true
}

// takeFound puts a copy into the table that was found in a slot where the table had none.
func (t *copyTable) takeFound(slot copies.Slot, flight *mirror.Flight, meta *metav1.PartialObjectMetadata) []Key {
	of := t.ofKind(slot.Kind)
	if t.At(slot) != nil {
		of.Refused(flight)
		return nil
	}
	of.Answered(flight, shownCopy{meta, nil}) // where the copy has gone since, the keys lead to another try
	return t.keysOf(slot, meta.Labels[v1alpha1.LabelDistributedBy])
}

// changeCopy changes the copy in slot, if it is still this version of this object.
func (t *copyTable) changeCopy(slot copies.Slot, uid, resourceVersion string, change func(*Copy)) {
	if known := t.At(slot); known != nil && t.ofKind(slot.Kind).Mark(slot.NamespacedName()) == markOf(uid, resourceVersion) {
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

// copyStore holds the copies of a kind.
type copyStore struct {
	*Copies
	kind schema.GroupKind
}

func (s copyStore) At(p mirror.Place) (*Copy, mirror.Mark) {
	if known := s.Copies.At(copies.SlotOf(s.kind, p)); known != nil {
		return known, markOf(known.UID, known.ResourceVersion)
	}
	return nil, mirror.Mark{}
}

func (s copyStore) In(namespace string) iter.Seq2[mirror.Place, *Copy] {
	all := s.All()
	if namespace != mirror.Everywhere {
		all = s.Copies.In(namespace)
	}
	return func(yield func(mirror.Place, *Copy) bool) {
		for slot, one := range all {
			if slot.Kind == s.kind && !yield(slot.NamespacedName(), one) {
				return
			}
		}
	}
}

func (s copyStore) Put(p mirror.Place, _ mirror.Mark, one Copy) {
	s.Copies.Put(copies.SlotOf(s.kind, p), &one)
}

func (s copyStore) Drop(p mirror.Place) { s.Delete(copies.SlotOf(s.kind, p)) }

func markOf(uid, resourceVersion string) mirror.Mark {
	return mirror.Mark{UID: types.UID(uid), Version: resourceVersion}
}
