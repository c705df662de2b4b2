package copies

import (
	"cmp"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// claim is what the copies of one source would add to those of its tree.
type claim struct {
	key    sourceKey
	source *Source
	copies int   // how many copies are missing
	grown  int   // how many copies exist and would grow
	bytes  int64 // what the missing and the growing copies would add, in bytes
}

// claimsIn returns the claims of all sources in the tree of root, and the number and the bytes of their existing copies. Copies in mode
// create whose source is gone count, too: otherwise their number would have no bound.
func (a *Allotter) claimsIn(root string) (claims []claim, copies, bytes int64) {
	w, tally := a.world, &a.world.Copies.tally
	for _, namespace := range append(w.Forest.Subtree(root), root) {
		copies += int64(tally.made[namespace])
		places := w.Sources.places[namespace]
		if len(places) == 0 {
			continue
		}
		below := slices.Collect(w.Forest.Below(namespace))
		for p := range places {
			c := a.claimOf(sourceKey{p.kind, namespace, p.name}, below)
			if c.key.isRootRail(root) {
				copies -= int64(tally.madeOf[c.key])
				continue
			}
			bytes += int64(tally.madeOf[c.key]) * int64(a.writtenSize(c.key))
			claims = append(claims, c)
		}
	}
	for key, made := range tally.madeOf {
		if w.Sources.byKey[key] == nil && w.Forest.RootOf(key.namespace) == root {
			bytes += int64(made) * int64(tally.written[key])
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
	c.copies = max(0, s.reach(a.world.Forest, below)-made)
	c.bytes = int64(c.copies) * int64(s.Size)
	if growth := s.Size - a.writtenSize(key); growth > 0 {
		c.grown, c.bytes = made, c.bytes+int64(made)*int64(growth)
	}
	return c
}

// isRootRail reports whether the source is a rail of the tree: an object of the root whose name only cluster admins may give. It holds the
// tenant in bounds, so the tenant must not keep its copies out by using up the limits.
func (k sourceKey) isRootRail(root string) bool {
	return k.namespace == root && strings.HasPrefix(k.name, v1alpha1.RailPrefix)
}

func (c claim) compareAge(other claim) int {
	return cmp.Or(cmp.Compare(c.source.Created, other.source.Created), cmp.Compare(c.key.namespace, other.key.namespace),
		cmp.Compare(c.key.name, other.key.name), cmp.Compare(c.key.kind.String(), other.key.kind.String()))
}

// writtenSize returns the size of one existing copy of a source, in bytes; where that is unknown, the size of a new one.
func (a *Allotter) writtenSize(key sourceKey) int {
	return cmp.Or(a.world.Copies.tally.written[key], a.world.Sources.byKey[key].Size)
}

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
