package copies

import (
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Copy is what is known of an object with the label inherited-from.
type Copy struct {
	UID, ResourceVersion, From string
	Hash                       Hash
	// Ours reports that Hash.Place fits the slot of the copy: the operator wrote it there. A copy that is not ours is
	// another user's object.
	Ours        bool
	Terminating bool
	// Digest is a hash of the metadata of this version; see Rules.Digest. It is 0 for a copy that this process has not
	// written.
	Digest uint64
	// Meta is the digest of the labels and annotations that come from a source. Foreign reports that another field
	// manager owns a field whose change is drift. While Digest is 0, both may show drift. Marked reports that the copy
	// has a reserved key that the operator writes on no copy: that is drift for certain.
	Meta    uint64
	Foreign bool
	Marked  bool
	// Access reports that the copy is a RoleBinding that grants the access of a tenant. Subjects that its source no
	// longer has are removed from such a copy even in a halted namespace.
	Access bool
	// Drifted reports that the copy differs from what we wrote there last.
	Drifted bool
	// Kept is what a PUT over the copy must keep; nil for nearly all copies.
	Kept *Kept
}

// Kept holds what others added to a copy and may keep there.
type Kept struct {
	Finalizers          []string
	OwnerReferences     []metav1.OwnerReference
	Labels, Annotations map[string]string
}

// Copies are the objects of a World that bear the label inherited-from, ours or not. World alone adds and removes them,
// because limits and losses depend on them.
type Copies struct {
	rooms    map[string]*room // by namespace
	families map[place]*family
	bySource map[sourceKey]map[*room]struct{}
	counts   map[schema.GroupKind]int // how many copies of ours there are
	tally    tally
	// compared holds, for an access copy, the content hash of the source with which the copy was last compared.
	// planWithdrawal uses it.
	compared map[Slot]string
}

// family are all copies of one kind and name.
type family struct {
	place
	copies int // how many rooms hold one
}

// room holds the copies in one namespace.
type room struct {
	name   string
	copies map[*family]*record
	// froms counts our copies in mode update in this namespace, by the namespace of their source: a handful of
	// namespaces at most.
	froms []from
}

type from struct {
	namespace string
	copies    int
}

// newCopies returns no copies. hasSource reports whether a source exists.
func newCopies(hasSource func(sourceKey) bool) *Copies {
	return &Copies{
		rooms: map[string]*room{}, families: map[place]*family{}, bySource: map[sourceKey]map[*room]struct{}{},
		counts: map[schema.GroupKind]int{}, tally: newTally(hasSource), compared: map[Slot]string{},
	}
}

// At returns the copy at slot, ours or not, or nil. A change of the result takes effect only with World.PutCopy.
func (c *Copies) At(slot Slot) *Copy {
	if r := c.findRecord(slot); r != nil {
		return r.unpackCopy(slot)
	}
	return nil
}

func (c *Copies) findRecord(slot Slot) *record {
	if r := c.rooms[slot.Namespace]; r != nil {
		return r.copies[c.families[slot.place()]]
	}
	return nil
}

// In returns the slots of the copies of a kind in namespace, or Everywhere.
func (c *Copies) In(kind schema.GroupKind, namespace string) (slots []Slot) {
	if namespace != Everywhere {
		return c.rooms[namespace].slotsOf(kind)
	}
	for _, r := range c.rooms {
		slots = append(slots, r.slotsOf(kind)...)
	}
	return slots
}

// HasCopyOf reports whether a copy of the source at slot, ours or not, exists in any namespace.
func (c *Copies) HasCopyOf(slot Slot) bool { return len(c.bySource[slot.source()]) > 0 }

// NamespacesWith returns the namespaces that have a copy of the source at slot, ours or not, in no order.
func (c *Copies) NamespacesWith(slot Slot) []string {
	in := c.bySource[slot.source()]
	namespaces := make([]string, 0, len(in))
	for r := range in {
		namespaces = append(namespaces, r.name)
	}
	return namespaces
}

// HasUpdatedIn reports whether a copy of ours in mode update is in namespace. Such a copy is deleted when its source's
// namespace is no longer above.
func (c *Copies) HasUpdatedIn(namespace string) bool {
	r := c.rooms[namespace]
	return r != nil && len(r.froms) > 0
}

// GiveRightsFrom reports whether namespace has a RoleBinding that was copied from the namespace called from. The
// subjects of that RoleBinding have rights in namespace already.
func (c *Copies) GiveRightsFrom(namespace, from string) bool {
	r := c.rooms[namespace]
	if r == nil {
		return false
	}
	for of, known := range r.copies {
		if of.kind == RoleBindingKind && known.flags.has(ours) && known.from == from {
			return true
		}
	}
	return false
}

// SetCompared records that the access copy at slot grants nothing that its source, with this content, does not grant.
func (c *Copies) SetCompared(slot Slot, content string) {
	if r := c.findRecord(slot); r != nil && r.flags.has(accessCopy) {
		c.compared[slot] = content
	}
}

func (c *Copies) setRecord(slot Slot, known *record) {
	c.unlinkCopy(slot)
	r, of := c.ensureRoom(slot.Namespace), c.families[slot.place()]
	if of == nil {
		of = &family{place: place{slot.Kind, shareText(slot.Name)}}
		c.families[of.place] = of
	}
	of.copies++
	r.copies[of] = known
	source := sourceKey{slot.Kind, known.from, of.name}
	if c.bySource[source] == nil {
		c.bySource[source] = map[*room]struct{}{}
	}
	c.bySource[source][r] = struct{}{}
	c.countCopy(source, r, known, 1)
}

// removeRecord removes the copy at slot, and returns it; nil if there was none.
func (c *Copies) removeRecord(slot Slot) *record {
	delete(c.compared, slot)
	return c.unlinkCopy(slot)
}

func (c *Copies) unlinkCopy(slot Slot) *record {
	known, r := c.findRecord(slot), c.rooms[slot.Namespace]
	if known == nil {
		return nil
	}
	of := c.families[slot.place()]
	delete(r.copies, of)
	if of.copies--; of.copies == 0 {
		delete(c.families, of.place)
	}
	source := slot.At(known.from).source()
	if delete(c.bySource[source], r); len(c.bySource[source]) == 0 {
		delete(c.bySource, source)
	}
	c.countCopy(source, r, known, -1)
	if len(r.copies) == 0 {
		delete(c.rooms, r.name)
	}
	return known
}

// countCopy adds change to all numbers in which a copy of source in room r counts.
func (c *Copies) countCopy(source sourceKey, r *room, known *record, change int) {
	if known.flags.has(ours) {
		c.counts[source.kind] += change
	}
	c.tally.countCopy(source, known, change)
	if known.isBinding() {
		r.countFrom(known.from, change)
	}
}

// ensureRoom returns the room of a namespace, and makes one if there is none.
func (c *Copies) ensureRoom(namespace string) *room {
	r := c.rooms[namespace]
	if r == nil {
		r = &room{name: shareText(namespace), copies: map[*family]*record{}}
		c.rooms[r.name] = r
	}
	return r
}

// slotsOf returns the slots of the copies of a kind; none for a room that is nil.
func (r *room) slotsOf(kind schema.GroupKind) (slots []Slot) {
	if r == nil {
		return nil
	}
	for of := range r.copies {
		if of.kind == kind {
			slots = append(slots, Slot{kind, r.name, of.name})
		}
	}
	return slots
}

func (r *room) countFrom(namespace string, change int) {
	for i := range r.froms {
		if r.froms[i].namespace != namespace {
			continue
		}
		if r.froms[i].copies += change; r.froms[i].copies == 0 {
			r.froms = slices.Delete(r.froms, i, i+1)
		}
		return
	}
	r.froms = append(r.froms, from{namespace, change})
}

// record is a Copy as Copies keep it, in 88 bytes. Equal texts of many copies are kept once. For a
// copy that is not ours, unpackCopy returns no hash.
type record struct {
	id           Identity
	from         string
	content      string
	digest, meta uint64
	flags        flags
}

type flags uint8

const (
	ours flags = 1 << iota
	modeCreate
	modeUpdate
	terminating
	foreign
	marked
	drifted
	accessCopy
)

func (f flags) has(flag flags) bool { return f&flag != 0 }

func (r *record) mode() string {
	switch {
	case r.flags.has(modeUpdate):
		return v1alpha1.ModeUpdate
	case r.flags.has(modeCreate):
		return v1alpha1.ModeCreate
	}
	return ""
}

// isBinding reports whether the copy is ours and in mode update: such a copy is deleted when its source's namespace is
// no longer above.
func (r *record) isBinding() bool { return r.flags.has(ours) && r.flags.has(modeUpdate) }

func (r *record) setFlag(flag flags, on bool) {
	if on {
		r.flags |= flag
	}
}

func packCopy(c *Copy) *record {
	r := &record{
		id:   PackIdentity(c.UID, c.ResourceVersion, c.Kept),
		from: shareText(c.From), content: shareText(c.Hash.Content),
		digest: c.Digest, meta: c.Meta,
	}
	r.setFlag(ours, c.Ours)
	r.setFlag(modeCreate, c.Hash.Mode == v1alpha1.ModeCreate)
	r.setFlag(modeUpdate, c.Hash.Mode == v1alpha1.ModeUpdate)
	r.setFlag(terminating, c.Terminating)
	r.setFlag(foreign, c.Foreign)
	r.setFlag(marked, c.Marked)
	r.setFlag(drifted, c.Drifted)
	r.setFlag(accessCopy, c.Access)
	return r
}

// unpackCopy returns the Copy that r holds; slot is where it is. For a copy of ours, unpackCopy computes the place in
// the hash from the slot.
func (r *record) unpackCopy(slot Slot) *Copy {
	c := &Copy{
		From: r.from, Ours: r.flags.has(ours), Terminating: r.flags.has(terminating),
		Digest: r.digest, Meta: r.meta,
		Foreign: r.flags.has(foreign), Marked: r.flags.has(marked), Drifted: r.flags.has(drifted), Access: r.flags.has(accessCopy),
	}
	c.UID, c.ResourceVersion, c.Kept = r.id.Unpack()
	if c.Ours {
		c.Hash = Hash{Mode: r.mode(), Place: PlaceOf(slot, r.from), Content: r.content}
	}
	return c
}

// shareText returns a copy of s that equal strings share, to save memory. After a garbage collection, later calls may
// share another copy.
func shareText(s string) string { return unique.Make(s).Value() }
