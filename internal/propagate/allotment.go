package propagate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// allotment says for which sources in one tree the tree's limits leave no room. Existing copies count, whatever the limits are. Missing
// copies get the room that is left: the oldest source comes first, and of a source all copies are written or none. So the copies of a tree
// never exceed its limits, unless somebody lowers the limits.
type allotment struct {
	held map[sourceKey]heldSource
}

// heldSource is a source whose copies are not written.
type heldSource struct {
	copies int    // how many copies are not written
	limit  string // the limit, with its value, that these copies would exceed
	growth bool   // existing copies may not grow, either
}

// claim is what the copies of one source would add to those of its tree.
type claim struct {
	key    sourceKey
	source *Source
	copies int   // how many copies are missing
	grown  int   // how many copies exist and would grow
	bytes  int64 // what the missing and the growing copies would add, in bytes
}

// allotmentOf is the allotment of the tree of root, counted anew where something has changed that it rests on.
func (w *World) allotmentOf(root string) *allotment {
	if w.allottedIn != w.Forest {
		w.allottedIn = w.Forest
		clear(w.allotments)
	}
	a := w.allotments[root]
	if a == nil {
		a = w.allot(root, w.Forest.Limits(root))
		w.allotments[root] = a
	}
	return a
}

// recount says that the allotment of the tree around namespace is to be counted anew.
func (w *World) recount(namespace string) {
	if len(w.allotments) > 0 {
		delete(w.allotments, w.Forest.RootOf(namespace))
	}
}

func (w *World) allot(root string, limits v1alpha1.Limits) *allotment {
	a := &allotment{held: map[sourceKey]heldSource{}}
	if limits.Copies == nil && limits.Bytes == nil {
		return a
	}
	claims, copies, bytes := w.claimsIn(root)
	slices.SortFunc(claims, claim.compareAge)
	for _, c := range claims {
		if c.copies == 0 && c.bytes == 0 {
			continue
		}
		copies, bytes = copies+int64(c.copies), bytes+c.bytes
		switch {
		case limits.Bytes != nil && c.bytes > 0 && bytes > *limits.Bytes:
			a.held[c.key] = heldSource{c.copies + c.grown, fmt.Sprintf("limits.bytes %d", *limits.Bytes), true}
		case limits.Copies != nil && c.copies > 0 && copies > int64(*limits.Copies):
			a.held[c.key] = heldSource{c.copies, fmt.Sprintf("limits.copies %d", *limits.Copies), false}
		}
	}
	return a
}

// claimsIn returns the claims of all sources in the tree of root, and the number and the bytes of their existing copies. Copies in mode
// create whose source is gone count, too: otherwise their number would have no bound.
func (w *World) claimsIn(root string) (claims []claim, copies, bytes int64) {
	for _, namespace := range append(w.Forest.Subtree(root), root) {
		copies += int64(w.made[namespace])
		r := w.rooms[namespace]
		if r == nil || len(r.sources) == 0 {
			continue
		}
		below := slices.Collect(w.Forest.Below(namespace))
		for p := range r.sources {
			c := w.claimOf(sourceKey{p.kind, namespace, p.name}, below)
			bytes += int64(w.madeOf[c.key]) * int64(w.writtenSize(c.key))
			claims = append(claims, c)
		}
	}
	for key, made := range w.madeOf {
		if w.sources[key] == nil && w.Forest.RootOf(key.namespace) == root {
			bytes += int64(made) * int64(w.written[key])
		}
	}
	return claims, copies, bytes
}

func (w *World) claimOf(key sourceKey, below []string) claim {
	s, made := w.sources[key], w.madeOf[key]
	c := claim{key: key, source: s}
	kind := w.kinds[key.kind]
	if s.Access || s.Invalid != "" || s.Excluded != "" || s.Terminating || s.Mode == v1alpha1.ModeNone || !kind.synced || kind.mode == Remove {
		return c
	}
	c.copies = max(0, s.reach(w.Forest, below)-made)
	c.bytes = int64(c.copies) * int64(s.Size)
	if growth := s.Size - w.writtenSize(key); growth > 0 {
		c.grown, c.bytes = made, c.bytes+int64(made)*int64(growth)
	}
	return c
}

func (c claim) compareAge(other claim) int {
	return cmp.Or(cmp.Compare(c.source.Created, other.source.Created), cmp.Compare(c.key.namespace, other.key.namespace),
		cmp.Compare(c.key.name, other.key.name), cmp.Compare(c.key.kind.String(), other.key.kind.String()))
}

// writtenSize returns the size of one existing copy of a source, in bytes; where that is unknown, the size of a new one.
func (w *World) writtenSize(key sourceKey) int { return cmp.Or(w.written[key], w.sources[key].Size) }

// reach counts the namespaces below that s selects, also those where an object is in the way of the copy.
func (s *Source) reach(f *forest.Snapshot, below []string) int {
	if s.Selector == nil || s.Selector.Empty() {
		return len(below)
	}
	if s.reachedIn != f {
		s.reachedIn, s.reached = f, 0
		for _, namespace := range below {
			if s.selects(f, namespace) {
				s.reached++
			}
		}
	}
	return s.reached
}

// isHeld says whether limits forbid to create a copy of s, which stands at from, or to replace the copy over by a larger one. Limits never
// hold back access copies, nor updates of RBAC kinds, so that rights are always up to date.
func (w *World) isHeld(verb Verb, from Slot, s *Source, over *record) bool {
	grows := verb == Update && over != nil && over.content != s.Content && from.Kind.Group != roleBindings.Group &&
		(s.Size > w.writtenSize(from.source()) || over.from != from.Namespace)
	if s.Access || verb != Create && !grows {
		return false
	}
	root := w.Forest.RootOf(from.Namespace)
	if root == "" {
		return false // s stands in a template, which cluster admins made
	}
	h, held := w.allotmentOf(root).held[from.source()]
	return held && (h.growth || verb == Create)
}

// NoteHeld remembers that the limits of its tree hold back the source at slot, so that Reallot returns the source as released when they no
// longer do.
func (w *World) NoteHeld(slot Slot) {
	root := w.Forest.RootOf(slot.Namespace)
	if w.heldIn[root] == nil {
		w.heldIn[root] = map[sourceKey]bool{}
	}
	if _, known := w.heldIn[root][slot.source()]; !known {
		w.heldIn[root][slot.source()] = false
	}
}

// IsLimited says whether limits bound the copies in the tree around namespace.
func (w *World) IsLimited(namespace string) bool {
	limits := w.Forest.Limits(w.Forest.RootOf(namespace))
	return limits.Copies != nil || limits.Bytes != nil
}

// HoldsBack says whether NoteHeld was called for the tree around namespace, and not everything was released since.
func (w *World) HoldsBack(namespace string) bool {
	return len(w.heldIn) > 0 && len(w.heldIn[w.Forest.RootOf(namespace)]) > 0
}

// RootsHeldBack returns the roots of the trees whose limits hold sources back, as NoteHeld was told.
func (w *World) RootsHeldBack() []string { return slices.Collect(maps.Keys(w.heldIn)) }

// Reallot looks again at the sources in the tree of root that were held back. It returns those that are released, and those that are held
// and were not at its last call, the oldest first.
func (w *World) Reallot(root string) (released, held []Slot) {
	now := w.allotmentOf(root).held
	for key, known := range w.heldIn[root] {
		slot := Slot{key.kind, key.namespace, key.name}
		if _, still := now[key]; !still {
			delete(w.heldIn[root], key)
			released = append(released, slot)
		} else if !known {
			w.heldIn[root][key] = true
			held = append(held, slot)
		}
	}
	if len(w.heldIn[root]) == 0 {
		delete(w.heldIn, root)
	}
	slices.SortFunc(held, func(a, b Slot) int {
		return claim{key: a.source(), source: w.Source(a)}.compareAge(claim{key: b.source(), source: w.Source(b)})
	})
	return released, held
}

// HeldAround are the sources in namespace that the limits of its tree hold back; where namespace is the root, those in the whole tree.
func (w *World) HeldAround(namespace string) []Trouble {
	root := w.Forest.RootOf(namespace)
	if len(w.heldIn[root]) == 0 {
		return nil
	}
	var all []Trouble
	for key, h := range w.allotmentOf(root).held {
		if namespace == root || namespace == key.namespace {
			all = append(all, Trouble{
				Slot: Slot{key.kind, key.namespace, key.name}, Reason: v1alpha1.ReasonLimitExceeded, From: key.namespace,
				Text: fmt.Sprintf("%d copies of it are not written: they would exceed %s of the tree of %s, where older sources come first", h.copies, h.limit, root),
			})
		}
	}
	return all
}

// CountHeld are the numbers of copies that limits hold back, by kind.
func (w *World) CountHeld() map[string]map[string]int {
	all := map[string]map[string]int{}
	for root := range w.heldIn {
		for key, h := range w.allotmentOf(root).held {
			if all[key.kind.Group] == nil {
				all[key.kind.Group] = map[string]int{}
			}
			all[key.kind.Group][key.kind.Kind] += h.copies
		}
	}
	return all
}
