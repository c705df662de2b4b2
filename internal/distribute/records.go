package distribute

import (
	"iter"
	"unique"

	"github.com/warren-tenancy/warren/internal/copies"
)

// Copies holds all objects with the label distributed-by, whoever wrote them. A copy takes a record of 56 bytes in a
// map and no allocation of its own. With 10,000 namespaces, single allocations would be scattered among the garbage of
// a roll-out, and would keep many times their size in memory pages.
type Copies struct {
	families map[Family]map[string]record // by namespace
	// name returns the string for a namespace that is in memory elsewhere already, so that its bytes are not kept
	// twice.
	name func(namespace string) string
}

// NewCopies returns an empty Copies. name returns the string to keep for a namespace.
func NewCopies(name func(namespace string) string) *Copies {
	return &Copies{map[Family]map[string]record{}, name}
}

// At returns the copy in slot, nil if there is none. Changes to the returned Copy are stored only by Put.
func (c *Copies) At(slot copies.Slot) *Copy {
	if r, ok := c.families[FamilyOf(slot)][slot.Namespace]; ok {
		return r.unpackCopy()
	}
	return nil
}

// Put adds or replaces the copy in slot.
func (c *Copies) Put(slot copies.Slot, one *Copy) {
	of := FamilyOf(slot)
	if c.families[of] == nil {
		c.families[of] = map[string]record{}
	}
	c.families[of][c.name(slot.Namespace)] = packCopy(one)
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
			if !yield(namespace, r.unpackCopy()) {
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
	id     copies.Identity
	digest uint64
	texts  unique.Handle[texts]
	flags  flags
}

type texts struct{ by, content, owner string }

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

func flagIf(f flags, on bool) flags {
	if on {
		return f
	}
	return 0
}

func packCopy(c *Copy) record {
	return record{
		id: copies.PackIdentity(c.UID, c.ResourceVersion, c.Kept), digest: c.Digest, texts: unique.Make(texts{c.By, c.Content, c.Owner}),
		flags: flagIf(ours, c.Ours) | flagIf(terminating, c.Terminating) | flagIf(locked, c.Locked) | flagIf(adopted, c.Adopted) |
			flagIf(foreign, c.Foreign) | flagIf(drifted, c.Drifted) | flagIf(known, c.Known),
	}
}

func (r *record) unpackCopy() *Copy {
	said := r.texts.Value()
	c := &Copy{
		By: said.by, Content: said.content, Owner: said.owner, Digest: r.digest,
		Ours: r.flags&ours != 0, Terminating: r.flags&terminating != 0, Locked: r.flags&locked != 0, Adopted: r.flags&adopted != 0,
		Foreign: r.flags&foreign != 0, Drifted: r.flags&drifted != 0, Known: r.flags&known != 0,
	}
	c.UID, c.ResourceVersion, c.Kept = r.id.Unpack()
	return c
}
