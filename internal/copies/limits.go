package copies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// allotment holds the sources of one tree for whose missing copies the tree's limits leave no room. Existing copies
// count, whatever the limits are. Missing copies get the room that is left: the oldest source comes first, and of a
// source all copies are written or none. So the copies of a tree never exceed its limits, unless somebody lowers the
// limits.
//
// If the claim of a source does not fit, younger sources that lack copies wait too. Otherwise small sources would keep
// a large one out for ever. A source claims room in each namespace that it selects, also where another object is in the
// way. Limits delete nothing, because an outage of running workloads is worse than copies beyond the limit. With
// limits.bytes, a copy that would grow, or that would get another source, keeps its content while its source is held
// back.
//
// Bytes are those of the JSON that is written, without what differs from namespace to namespace. A source that was not
// read yet counts no bytes. So, for a moment after a start, a younger source may take an older one's room. A source that
// was changed counts as before until it is read. All copies of a source that shrinks count as before until the last one
// is written anew. After a start, copies are taken to be as large as their source is then.
//
// What a ResourceDistribution writes is not counted: it belongs to cluster admins, and has targets and limits of its
// own.
type allotment struct {
	held map[sourceKey]heldSource
	// room is how many copies a source that is not held may still get; nil in a tree without limits.
	room map[sourceKey]int
}

// heldSource is a source whose copies are not written.
type heldSource struct {
	copies int    // how many copies are not written
	limit  string // the limit, with its value, that these copies would exceed
	growth bool   // existing copies may not grow, either
}

// Allotter counts what the limits of trees leave room for, and remembers which sources they hold back. It reads the
// rest of its world, and changes nothing there.
type Allotter struct {
	world *World
	// allotments are those of the trees, by root. They were counted in the forest allottedIn.
	allotments map[string]*allotment
	allottedIn *forest.Snapshot
	// heldIn holds, by root, the sources for which NoteHeld was called; the value is true for those that Reallot has
	// returned as held.
	heldIn map[string]map[sourceKey]bool
}

func newAllotter(w *World) *Allotter {
	return &Allotter{world: w, allotments: map[string]*allotment{}, heldIn: map[string]map[sourceKey]bool{}}
}

// allotmentOf returns the allotment of the tree of root. It is counted anew if something on which it depends has
// changed.
func (a *Allotter) allotmentOf(root string) *allotment {
	f := a.world.Forest
	if a.allottedIn != f {
		a.allottedIn = f
		clear(a.allotments)
	}
	known := a.allotments[root]
	if known == nil {
		known = a.allotRoom(root, f.Limits(root))
		a.allotments[root] = known
	}
	return known
}

// queueRecount makes allotmentOf count the tree around namespace anew.
func (a *Allotter) queueRecount(namespace string) {
	if len(a.allotments) > 0 {
		delete(a.allotments, a.world.Forest.RootOf(namespace))
	}
}

// noteMade is called before the copy r is put at slot. It makes allotmentOf count the tree anew if no room was counted for
// that copy: its write was in flight when an older source took the room, or when its source was changed.
func (a *Allotter) noteMade(slot Slot, r *record) {
	if len(a.allotments) == 0 {
		return
	}
	root, from := a.world.Forest.RootOf(r.from), slot.At(r.from)
	known := a.allotments[root]
	if known == nil || known.room == nil || from.source().isRootRail(root) {
		return
	}
	if known.room[from.source()]--; known.room[from.source()] < 0 || !a.isWanted(slot, r.from) {
		delete(a.allotments, root)
	}
}

// isWanted reports whether the source in the namespace called from exists and selects the namespace of slot, which is below.
func (a *Allotter) isWanted(slot Slot, from string) bool {
	f, s := a.world.Forest, a.world.Sources.At(slot.At(from))
	return s != nil && f.IsBelow(slot.Namespace, from) && s.selectsNamespace(f, slot.Namespace)
}

// recountAll makes allotmentOf count every tree anew.
func (a *Allotter) recountAll() { clear(a.allotments) }

func (a *Allotter) allotRoom(root string, limits v1alpha1.Limits) *allotment {
	of := &allotment{held: map[sourceKey]heldSource{}}
	if limits.Copies == nil && limits.Bytes == nil {
		return of
	}
	of.room = map[sourceKey]int{}
	claims, copies, bytes := a.claimsIn(root)
	slices.SortFunc(claims, claim.compareAge)
	for _, c := range claims {
		if c.copies == 0 && c.bytes == 0 {
			continue
		}
		// A claim that doesn't fit counts all the same. So younger sources wait behind it, and small ones can't keep it
		// out for ever.
		copies, bytes = copies+int64(c.copies), bytes+c.bytes
		switch {
		case limits.Bytes != nil && c.bytes > 0 && bytes > *limits.Bytes:
			of.held[c.key] = heldSource{c.copies + c.grown, fmt.Sprintf("limits.bytes %d", *limits.Bytes), true}
		case limits.Copies != nil && c.copies > 0 && copies > int64(*limits.Copies):
			of.held[c.key] = heldSource{c.copies, fmt.Sprintf("limits.copies %d", *limits.Copies), false}
		default:
			of.room[c.key] = c.copies
		}
	}
	return of
}

// isHeld reports whether limits forbid to create a copy of s, whose slot is from, or to replace the copy over by one
// that is larger or comes from another namespace. Limits never hold back access copies, nor updates of RBAC kinds, so
// that rights are always up to date.
func (a *Allotter) isHeld(verb Verb, from Slot, s *Source, over *record) bool {
	grows := verb == Update && over != nil && over.content != s.Content && from.Kind.Group != RoleBindingKind.Group &&
		(s.Size > a.writtenSize(from.source()) || over.from != from.Namespace)
	if s.Access || verb != Create && !grows {
		return false
	}
	root := a.world.Forest.RootOf(from.Namespace)
	if root == "" || from.source().isRootRail(root) {
		return false // cluster admins made s: it is in a template, or has the name of a rail
	}
	h, held := a.allotmentOf(root).held[from.source()]
	return held && (h.growth || verb == Create)
}

// NoteHeld remembers that the limits of its tree hold back the source at slot, so that Reallot returns the source as
// released when they no longer do.
func (a *Allotter) NoteHeld(slot Slot) {
	root := a.world.Forest.RootOf(slot.Namespace)
	if a.heldIn[root] == nil {
		a.heldIn[root] = map[sourceKey]bool{}
	}
	if _, known := a.heldIn[root][slot.source()]; !known {
		a.heldIn[root][slot.source()] = false
	}
}

// IsLimited reports whether limits bound the copies in the tree around namespace, by the forest f.
func IsLimited(f *forest.Snapshot, namespace string) bool {
	limits := f.Limits(f.RootOf(namespace))
	return limits.Copies != nil || limits.Bytes != nil
}

// HoldsBack reports whether NoteHeld was called for the tree around namespace, and not everything was released since.
func (a *Allotter) HoldsBack(namespace string) bool {
	return len(a.heldIn) > 0 && len(a.heldIn[a.world.Forest.RootOf(namespace)]) > 0
}

// RootsHeldBack returns the roots of the trees for which HoldsBack is true.
func (a *Allotter) RootsHeldBack() []string { return slices.Collect(maps.Keys(a.heldIn)) }

// Reallot looks again at the sources in the tree of root that were held back. It returns those that are released, and
// those that are still held and that no earlier call has returned, the oldest first.
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

// HeldAround returns the sources in namespace that the limits of its tree hold back; where namespace is the root, those
// in the whole tree.
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
				Text: fmt.Sprintf("%s exceed %s of the tree of %s; older sources have priority: delete a source, or ask a cluster "+
					"admin to raise the limit", describeHeld(h.copies), h.limit, root),
			})
		}
	}
	return all
}

// describeHeld returns the beginning of a sentence about this number of copies that a limit holds back.
func describeHeld(copies int) string {
	if copies == 1 {
		return "1 copy of it is not written: it would"
	}
	return fmt.Sprintf("%d copies of it are not written: they would", copies)
}

// CountHeld returns how many copies limits hold back, by the group and name of their kind.
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

// claim is what the copies of one source would add to those of its tree.
type claim struct {
	key    sourceKey
	source *Source
	copies int   // how many copies are missing
	grown  int   // how many copies exist and would grow
	bytes  int64 // what the missing and the growing copies would add, in bytes
}

// claimsIn returns the claims of all sources in the tree of root, and the number and the bytes of their existing
// copies. Copies whose source is gone count, too: those in mode create stay, so otherwise their number would have no
// bound. So do the copies of namespaces below a namespace that was deleted, as in every limit (forest.Members).
func (a *Allotter) claimsIn(root string) (claims []claim, copies, bytes int64) {
	w, tally := a.world, &a.world.Copies.tally
	for _, namespace := range append(w.Forest.Members(root), root) {
		copies += int64(tally.made[namespace])
		places := w.Sources.places[namespace]
		if len(places) == 0 {
			continue
		}
		below := slices.Collect(w.Forest.Below(namespace))
		for p := range places {
			key := sourceKey{p.kind, namespace, p.name}
			a.settleSize(key)
			c := a.claimOf(key, below)
			if c.key.isRootRail(root) {
				// made counts rails, too, but they use up no limit of the tenant.
				copies -= int64(tally.madeOf[c.key])
				continue
			}
			bytes += int64(tally.madeOf[c.key]) * int64(a.writtenSize(c.key))
			claims = append(claims, c)
		}
	}
	for namespace, keys := range tally.orphaned {
		if w.Forest.RootOf(namespace) != root {
			continue
		}
		for key := range keys {
			bytes += int64(tally.madeOf[key]) * int64(tally.written[key])
		}
	}
	return claims, copies, bytes
}

func (a *Allotter) claimOf(key sourceKey, below []string) claim {
	s, made := a.world.Sources.byKey[key], a.world.Copies.tally.madeOf[key]
	c := claim{key: key, source: s}
	kind := a.world.kinds[key.kind]
	if s.Access || s.Invalid != "" || s.Excluded != "" || s.Terminating || s.Mode == v1alpha1.ModeNone || !kind.synced || kind.mode == Remove {
		return c
	}
	c.copies = max(0, s.countReached(a.world.Forest, below)-a.countPlaced(key, s))
	c.bytes = int64(c.copies) * int64(s.Size)
	if growth := s.Size - a.writtenSize(key); growth > 0 {
		c.grown, c.bytes = made, c.bytes+int64(made)*int64(growth)
	}
	return c
}

// countPlaced counts the copies of s, whose key is given, that are where s wants them. Others count for the limit, too,
// but take the place of none that is missing.
func (a *Allotter) countPlaced(key sourceKey, s *Source) int {
	if s.placedIn != a.world.Forest {
		s.placedIn, s.placed = a.world.Forest, 0
		for r := range a.world.Copies.bySource[key] {
			slot := key.slot().At(r.name)
			a.notePlaced(slot, a.world.Copies.findRecord(slot), 1)
		}
	}
	return s.placed
}

// notePlaced adds change for the copy r at slot to what countPlaced has counted.
func (a *Allotter) notePlaced(slot Slot, r *record, change int) {
	if s := a.world.Sources.At(slot.At(r.from)); s != nil && s.placedIn == a.world.Forest && r.counts() && a.isWanted(slot, r.from) {
		s.placed += change
	}
}

// isRootRail reports whether the source is a rail of the tree: an object of the root whose name only cluster admins may
// give. It limits the tenant, so the tenant must not be able to prevent its copies by using up the limits.
func (k sourceKey) isRootRail(root string) bool {
	return k.namespace == root && strings.HasPrefix(k.name, v1alpha1.RailPrefix)
}

func (c claim) compareAge(other claim) int {
	return cmp.Or(cmp.Compare(c.source.Created, other.source.Created), cmp.Compare(c.key.namespace, other.key.namespace),
		cmp.Compare(c.key.name, other.key.name), cmp.Compare(c.key.kind.String(), other.key.kind.String()))
}

// settleSize lowers the recorded size of the copies of a source that has shrunk, once each copy that counts has the
// present content: until then, some are as large as before. It reports whether the size has changed. A map's order is
// random, so while many copies are outdated, one of them is soon met.
func (a *Allotter) settleSize(key sourceKey) (changed bool) {
	s, written := a.world.Sources.byKey[key], a.world.Copies.tally.written
	if s == nil || s.Content == "" || written[key] <= s.Size {
		return false
	}
	for in := range a.world.Copies.bySource[key] {
		if r := a.world.Copies.findRecord(key.slot().At(in.name)); r.counts() && r.content != s.Content {
			return false
		}
	}
	written[key] = s.Size
	return true
}

// writtenSize returns the size of the largest existing copy of a source, in bytes; where that is unknown, the size of a
// new one.
func (a *Allotter) writtenSize(key sourceKey) int {
	return cmp.Or(a.world.Copies.tally.written[key], a.world.Sources.byKey[key].Size)
}

// countReached counts the namespaces below that s selects, also those where an object is in the way of the copy.
func (s *Source) countReached(f *forest.Snapshot, below []string) int {
	if s.Selector == nil || s.Selector.Empty() {
		return len(below)
	}
	if s.reachedIn != f {
		s.reachedIn, s.reached = f, 0
		for _, namespace := range below {
			if s.selectsNamespace(f, namespace) {
				s.reached++
			}
		}
	}
	return s.reached
}
