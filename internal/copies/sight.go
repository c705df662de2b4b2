package copies

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Everywhere stands for the whole cluster in place of a namespace.
const Everywhere = ""

// Sight reports whether the operator sees the objects of a narrow kind in one namespace, or in the whole cluster. Only
// where the kind is Seen does the absence of an object mean that it does not exist.
type Sight int8

// The sights of a narrow kind.
const (
	Awaited Sight = iota // the kind is about to be listed there
	Seen
	Unseen // the operator can't list the kind there, until a right comes back or the API server answers
)

// Sights hold the sights of narrow kinds: those that are watched only where the operator's RBAC allows. Any other kind
// is seen everywhere.
type Sights struct {
	kinds map[schema.GroupKind]*kindSights
}

// kindSights hold the sight of the sources and of the copies of one narrow kind, by namespace. A kind that is Seen
// Everywhere is Seen in each namespace.
type kindSights struct{ sources, copies map[string]Sight }

func newSights() *Sights { return &Sights{map[schema.GroupKind]*kindSights{}} }

// SetNarrow makes a kind narrow. From now on the kind is seen only where Set says so.
func (s *Sights) SetNarrow(kind schema.GroupKind) {
	s.kinds[kind] = &kindSights{map[string]Sight{}, map[string]Sight{}}
}

// IsNarrow reports whether a kind is narrow: SetNarrow was called for it, and it was not forgotten since.
func (s *Sights) IsNarrow(kind schema.GroupKind) bool { return s.kinds[kind] != nil }

// Set sets the sight of the sources, or copies, or both, of a narrow kind in namespace, or Everywhere. For any other
// kind it does nothing.
func (s *Sights) Set(kind schema.GroupKind, namespace string, sources, copies bool, now Sight) {
	k := s.kinds[kind]
	if k == nil {
		return
	}
	if sources {
		setSight(k.sources, namespace, now)
	}
	if copies {
		setSight(k.copies, namespace, now)
	}
}

func (s *Sights) dropKind(kind schema.GroupKind) { delete(s.kinds, kind) }

// seesFacts reports whether the operator sees all that a plan for slot rests on: the copies in its namespace, and the
// sources in these namespaces of the forest f.
func (s *Sights) seesFacts(slot Slot, f *forest.Snapshot, sources ...string) bool {
	k := s.kinds[slot.Kind]
	return k == nil || sightIn(k.copies, slot.Namespace) == Seen && k.seesSources(f, sources)
}

// seesSources reports whether the operator sees the sources in these namespaces. A namespace that doesn't exist holds
// no source.
func (k *kindSights) seesSources(f *forest.Snapshot, namespaces []string) bool {
	return !slices.ContainsFunc(namespaces, func(name string) bool { return f.Namespace(name) != nil && sightIn(k.sources, name) != Seen })
}

func sightIn(all map[string]Sight, namespace string) Sight {
	if all[Everywhere] == Seen {
		return Seen
	}
	return all[namespace]
}

func setSight(all map[string]Sight, namespace string, now Sight) {
	// Awaited is the zero value, so it needs no entry.
	if all[namespace] = now; now == Awaited {
		delete(all, namespace)
	}
}

// SeesSource reports whether the operator sees the place of the source at slot, so that a source that is missing there
// does not exist.
func (w *World) SeesSource(slot Slot) bool {
	k := w.Sights.kinds[slot.Kind]
	return k == nil || k.seesSources(w.Forest, []string{slot.Namespace})
}

// AwaitsSight reports whether rails of some kind can't be planned in namespace yet, because the operator doesn't see
// the copies there or the sources above: they are about to be listed, or may not be listed. Rights wait for sight no
// longer than they wait for missing rails.
func (w *World) AwaitsSight(namespace string) bool {
	if len(w.Sights.kinds) == 0 {
		return false
	}
	from, ok := w.Forest.Sources(namespace)
	if !ok {
		return false
	}
	for kind := range w.Sights.kinds {
		isRail := kind != RoleBindingKind && w.kinds[kind].synced && w.kinds[kind].mode != Remove
		if isRail && !w.Sights.seesFacts(Slot{Kind: kind, Namespace: namespace}, w.Forest, from.Names...) {
			return true
		}
	}
	return false
}
