package distribute

import (
	"iter"
	"strconv"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/propagate"
)

// Family are all objects of one kind and name.
type Family struct {
	Kind schema.GroupKind
	Name string
}

// Family is that of the copies of t.
func (t *Template) Family() Family { return Family{t.Kind.GroupKind(), t.Name} }

// FamilyOf is the family of what stands at slot.
func FamilyOf(slot propagate.Slot) Family { return Family{slot.Kind, slot.Name} }

// Slot is where the object of a family stands in a namespace.
func (of Family) Slot(namespace string) propagate.Slot {
	return propagate.Slot{Kind: of.Kind, Namespace: namespace, Name: of.Name}
}

// Copies are all objects with the label distributed-by, whoever wrote them. A copy takes the 56 bytes of its record and its share
// of a map, which has no pointer of its own to anything: with 10,000 namespaces, what is allocated one by one among the garbage of
// a roll-out would hold many times its size in pages.
type Copies struct {
	families map[Family]map[string]record // by namespace
	// name is the string that stands for a namespace elsewhere already, so that its bytes are not kept twice.
	name func(namespace string) string
}

// NewCopies returns Copies that hold none.
func NewCopies(name func(namespace string) string) *Copies {
	return &Copies{map[Family]map[string]record{}, name}
}

// At is the copy at slot; nil if none stands there. What is changed in it is kept by Put alone.
func (c *Copies) At(slot propagate.Slot) *Copy {
	if r, ok := c.families[FamilyOf(slot)][slot.Namespace]; ok {
		return r.unpack()
	}
	return nil
}

// Put adds or replaces the copy at slot.
func (c *Copies) Put(slot propagate.Slot, one *Copy) {
	of := FamilyOf(slot)
	if c.families[of] == nil {
		c.families[of] = map[string]record{}
	}
	c.families[of][c.name(slot.Namespace)] = pack(one)
}

// Delete takes the copy at slot off.
func (c *Copies) Delete(slot propagate.Slot) {
	of := FamilyOf(slot)
	if delete(c.families[of], slot.Namespace); len(c.families[of]) == 0 {
		delete(c.families, of)
	}
}

// Of are the copies of a family, by namespace.
func (c *Copies) Of(of Family) iter.Seq2[string, *Copy] {
	return func(yield func(string, *Copy) bool) {
		for namespace, r := range c.families[of] {
			if !yield(namespace, r.unpack()) {
				return
			}
		}
	}
}

// All are all copies.
func (c *Copies) All() iter.Seq2[propagate.Slot, *Copy] {
	return func(yield func(propagate.Slot, *Copy) bool) {
		for of := range c.families {
			for namespace, one := range c.Of(of) {
				if !yield(of.Slot(namespace), one) {
					return
				}
			}
		}
	}
}

// In are the copies in one namespace.
func (c *Copies) In(namespace string) iter.Seq2[propagate.Slot, *Copy] {
	return func(yield func(propagate.Slot, *Copy) bool) {
		for of := range c.families {
			slot := of.Slot(namespace)
			if one := c.At(slot); one != nil && !yield(slot, one) {
				return
			}
		}
	}
}

// record is a Copy as Copies keep it. Texts that many copies have in common are kept once.
type record struct {
	uid             [16]byte
	resourceVersion uint64
	digest          uint64
	texts           unique.Handle[texts]
	rare            *rare // nil for nearly all
	flags           flags
}

type texts struct{ by, content, owner string }

// rare is what few copies have: something that others added, and a UID or a resourceVersion in another form than the usual one.
type rare struct {
	kept                 *propagate.Kept
	uid, resourceVersion string // where usual is false
	usual                bool
}

type flags uint8

const (
	ours flags = 1 << iota
	terminating
	locked
	adopted
	foreign
	drifted
	known
)

func flag(f flags, on bool) flags {
	if on {
		return f
	}
	return 0
}

func pack(c *Copy) record {
	r := record{
		digest: c.Digest, texts: unique.Make(texts{c.By, c.Content, c.Owner}),
		flags: flag(ours, c.Ours) | flag(terminating, c.Terminating) | flag(locked, c.Locked) | flag(adopted, c.Adopted) |
			flag(foreign, c.Foreign) | flag(drifted, c.Drifted) | flag(known, c.Known),
	}
	usual := propagate.ParseUID(r.uid[:], c.UID)
	if n, err := strconv.ParseUint(c.ResourceVersion, 10, 64); err == nil && strconv.FormatUint(n, 10) == c.ResourceVersion {
		r.resourceVersion = n
	} else {
		usual = false
	}
	if !usual {
		r.rare = &rare{kept: c.Kept, uid: c.UID, resourceVersion: c.ResourceVersion}
	} else if c.Kept != nil {
		r.rare = &rare{kept: c.Kept, usual: true}
	}
	return r
}

func (r *record) unpack() *Copy {
	said := r.texts.Value()
	c := &Copy{
		By: said.by, Content: said.content, Owner: said.owner, Digest: r.digest,
		Ours: r.flags&ours != 0, Terminating: r.flags&terminating != 0, Locked: r.flags&locked != 0, Adopted: r.flags&adopted != 0,
		Foreign: r.flags&foreign != 0, Drifted: r.flags&drifted != 0, Known: r.flags&known != 0,
	}
	if r.rare != nil {
		c.Kept = r.rare.kept
	}
	if r.rare == nil || r.rare.usual {
		c.UID, c.ResourceVersion = propagate.FormatUID(r.uid), strconv.FormatUint(r.resourceVersion, 10)
	} else {
		c.UID, c.ResourceVersion = r.rare.uid, r.rare.resourceVersion
	}
	return c
}
