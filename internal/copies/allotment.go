package copies

import (
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

// Allotter counts what the limits of trees leave room for, and remembers which sources they hold back. It reads the rest of its world, and
// changes nothing there.
type Allotter struct {
	world *World
	// allotments are by root, and hold for the forest allottedIn.
	allotments map[string]*allotment
	allottedIn *forest.Snapshot
	// heldIn holds, by root, the sources that limits hold back, as NoteHeld was told; true for those that Reallot has returned as held.
	heldIn map[string]map[sourceKey]bool
}

func newAllotter(w *World) *Allotter {
	return &Allotter{world: w, allotments: map[string]*allotment{}, heldIn: map[string]map[sourceKey]bool{}}
}

// allotmentOf is the allotment of the tree of root, counted anew where something has changed that it rests on.
func (a *Allotter) allotmentOf(root string) *allotment {
	f := a.world.Forest
	if a.allottedIn != f {
		a.allottedIn = f
		clear(a.allotments)
	}
	known := a.allotments[root]
	if known == nil {
		known = a.allot(root, f.Limits(root))
		a.allotments[root] = known
	}
	return known
}

// recount says that the allotment of the tree around namespace is to be counted anew.
func (a *Allotter) recount(namespace string) {
	if len(a.allotments) > 0 {
		delete(a.allotments, a.world.Forest.RootOf(namespace))
	}
}

// recountAll says that all allotments are to be counted anew.
func (a *Allotter) recountAll() { clear(a.allotments) }

func (a *Allotter) allot(root string, limits v1alpha1.Limits) *allotment {
	of := &allotment{held: map[sourceKey]heldSource{}}
	if limits.Copies == nil && limits.Bytes == nil {
		return of
	}
	claims, copies, bytes := a.claimsIn(root)
	slices.SortFunc(claims, claim.compareAge)
	for _, c := range claims {
		if c.copies == 0 && c.bytes == 0 {
			continue
		}
		copies, bytes = copies+int64(c.copies), bytes+c.bytes
		switch {
		case limits.Bytes != nil && c.bytes > 0 && bytes > *limits.Bytes:
			of.held[c.key] = heldSource{c.copies + c.grown, fmt.Sprintf("limits.bytes %d", *limits.Bytes), true}
		case limits.Copies != nil && c.copies > 0 && copies > int64(*limits.Copies):
			of.held[c.key] = heldSource{c.copies, fmt.Sprintf("limits.copies %d", *limits.Copies), false}
		}
	}
	return of
}

// isHeld says whether limits forbid to create a copy of s, which stands at from, or to replace the copy over by a larger one. Limits never
// hold back access copies, nor updates of RBAC kinds, so that rights are always up to date.
func (a *Allotter) isHeld(verb Verb, from Slot, s *Source, over *record) bool {
	grows := verb == Update && over != nil && over.content != s.Content && from.Kind.Group != roleBindings.Group &&
		(s.Size > a.writtenSize(from.source()) || over.from != from.Namespace)
	if s.Access || verb != Create && !grows {
		return false
	}
	root := a.world.Forest.RootOf(from.Namespace)
	if root == "" || from.source().isRootRail(root) {
		return false // cluster admins made s: it stands in a template, or has the name of a rail
	}
	h, held := a.allotmentOf(root).held[from.source()]
	return held && (h.growth || verb == Create)
}

// NoteHeld remembers that the limits of its tree hold back the source at slot, so that Reallot returns the source as released when they no
// longer do.
func (a *Allotter) NoteHeld(slot Slot) {
	root := a.world.Forest.RootOf(slot.Namespace)
	if a.heldIn[root] == nil {
		a.heldIn[root] = map[sourceKey]bool{}
	}
	if _, known := a.heldIn[root][slot.source()]; !known {
		a.heldIn[root][slot.source()] = false
	}
}

// IsLimited says whether limits bound the copies in the tree around namespace, by the forest f.
func IsLimited(f *forest.Snapshot, namespace string) bool {
	limits := f.Limits(f.RootOf(namespace))
	return limits.Copies != nil || limits.Bytes != nil
}

// HoldsBack says whether NoteHeld was called for the tree around namespace, and not everything was released since.
func (a *Allotter) HoldsBack(namespace string) bool {
	return len(a.heldIn) > 0 && len(a.heldIn[a.world.Forest.RootOf(namespace)]) > 0
}

// RootsHeldBack returns the roots of the trees whose limits hold sources back, as NoteHeld was told.
func (a *Allotter) RootsHeldBack() []string { return slices.Collect(maps.Keys(a.heldIn)) }

// Reallot looks again at the sources in the tree of root that were held back. It returns those that are released, and those that are held
// and were not at its last call, the oldest first.
func (a *Allotter) Reallot(root string) (released, held []Slot) {
	now := a.allotmentOf(root).held
	for key, known := range a.heldIn[root] {
		slot := key.slot()
		if _, still := now[key]; !still {
			delete(a.heldIn[root], key)
			released = append(released, slot)
		} else if !known {
			a.heldIn[root][key] = true
			held = append(held, slot)
		}
	}
	if len(a.heldIn[root]) == 0 {
		delete(a.heldIn, root)
	}
	slices.SortFunc(held, func(x, y Slot) int {
		return claim{key: x.source(), source: a.world.Sources.At(x)}.compareAge(claim{key: y.source(), source: a.world.Sources.At(y)})
	})
	return released, held
}

// HeldAround are the sources in namespace that the limits of its tree hold back; where namespace is the root, those in the whole tree.
func (a *Allotter) HeldAround(namespace string) []Trouble {
	root := a.world.Forest.RootOf(namespace)
	if len(a.heldIn[root]) == 0 {
		return nil
	}
	var all []Trouble
	for key, h := range a.allotmentOf(root).held {
		if namespace == root || namespace == key.namespace {
			all = append(all, Trouble{
				Slot: key.slot(), Reason: v1alpha1.ReasonLimitExceeded, From: key.namespace,
				Text: fmt.Sprintf("%s exceed %s of the tree of %s, where older sources come first", describeHeld(h.copies), h.limit, root),
			})
		}
	}
	return all
}

// describeHeld returns the beginning of a sentence about so many copies that a limit holds back.
func describeHeld(copies int) string {
	if copies == 1 {
		return "1 copy of it is not written: it would"
	}
	return fmt.Sprintf("%d copies of it are not written: they would", copies)
}

// CountHeld are the numbers of copies that limits hold back, by kind.
func (a *Allotter) CountHeld() map[string]map[string]int {
	all := map[string]map[string]int{}
	for root := range a.heldIn {
		for key, h := range a.allotmentOf(root).held {
			if all[key.kind.Group] == nil {
				all[key.kind.Group] = map[string]int{}
			}
			all[key.kind.Group][key.kind.Kind] += h.copies
		}
	}
	return all
}
