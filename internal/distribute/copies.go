package distribute

import (
	"iter"
	"strconv"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
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

// Copies holds all objects with the label distributed-by, whoever wrote them. A copy takes a record of 56 bytes in a map and no
// allocation of its own: with 10,000 namespaces, single allocations scattered among the garbage of a roll-out would keep many times
// their size in memory pages.
type Copies struct {
	families map[Family]map[string]record // by namespace
	// name returns the string for a namespace that is in memory elsewhere already, so that its bytes are not kept twice.
	name func(namespace string) string
}

// NewCopies returns an empty Copies. name returns the string to keep for a namespace.
func NewCopies(name func(namespace string) string) *Copies {
	return &Copies{map[Family]map[string]record{}, name}
}

// At returns the copy in slot, nil if there is none. Changes to the returned Copy are stored only by Put.
func (c *Copies) At(slot copies.Slot) *Copy {
	if r, ok := c.families[FamilyOf(slot)][slot.Namespace]; ok {
		return r.unpack()
	}
	return nil
}

// Put adds or replaces the copy in slot.
func (c *Copies) Put(slot copies.Slot, one *Copy) {
	of := FamilyOf(slot)
	if c.families[of] == nil {
		c.families[of] = map[string]record{}
	}
	c.families[of][c.name(slot.Namespace)] = pack(one)
}

// Delete removes the copy in slot, if there is one.
func (c *Copies) Delete(slot copies.Slot) {
	of := FamilyOf(slot)
	if delete(c.families[of], slot.Namespace); len(c.families[of]) == 0 {
		delete(c.families, of)
	}
}

// Of yields the copies of a family, by namespace.
func (c *Copies) Of(of Family) iter.Seq2[string, *Copy] {
	return func(yield func(string, *Copy) bool) {
		for namespace, r := range c.families[of] {
			if !yield(namespace, r.unpack()) {
				return
			}
		}
	}
}

// All yields all copies.
func (c *Copies) All() iter.Seq2[copies.Slot, *Copy] {
	return func(yield func(copies.Slot, *Copy) bool) {
		for of := range c.families {
			for namespace, one := range c.Of(of) {
				if !yield(of.Slot(namespace), one) {
					return
				}
			}
		}
	}
}

// In yields the copies in one namespace.
func (c *Copies) In(namespace string) iter.Seq2[copies.Slot, *Copy] {
	return func(yield func(copies.Slot, *Copy) bool) {
		for of := range c.families {
			slot := of.Slot(namespace)
			if one := c.At(slot); one != nil && !yield(slot, one) {
				return
			}
		}
	}
}

// record is the compact form in which Copies stores a Copy. Texts that many copies share are stored once.
type record struct {
	uid             [16]byte
	resourceVersion uint64
	digest          uint64
	texts           unique.Handle[texts]
	rare            *rare // nil for nearly all
	flags           flags
}

type texts struct{ by, content, owner string }

// rare holds values that few copies have: metadata that others added, and a UID or resourceVersion that doesn't fit record's fixed
// fields (usual is false).
type rare struct {
	kept                 *copies.Kept
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
	usual := copies.ParseUID(r.uid[:], c.UID)
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
		c.UID, c.ResourceVersion = copies.FormatUID(r.uid), strconv.FormatUint(r.resourceVersion, 10)
	} else {
		c.UID, c.ResourceVersion = r.rare.uid, r.rare.resourceVersion
	}
	return c
}
