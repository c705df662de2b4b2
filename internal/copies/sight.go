package copies

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/text"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Everywhere stands for the whole cluster in place of a namespace.
const Everywhere = ""

// Sight reports whether the operator sees the objects of a narrow kind in one namespace, or in the whole cluster. Only where the kind is
// Seen does the absence of an object mean that it does not exist.
type Sight int8

// The sights of a narrow kind.
const (
	Awaited Sight = iota // the kind is about to be listed there
	Seen
	Unseen // the operator can't list the kind there, until a right comes back or the API server answers
)

// Sights hold the sights of narrow kinds: those that are watched only where the operator's RBAC allows. Any other kind is seen everywhere.
type Sights struct {
	kinds map[schema.GroupKind]*kindSights
}

// kindSights hold the sight of the sources and of the copies of one narrow kind, by namespace. A kind that is Seen Everywhere is Seen in
// each namespace.
type kindSights struct{ sources, copies map[string]Sight }

func newSights() *Sights { return &Sights{map[schema.GroupKind]*kindSights{}} }

// SetNarrow makes a kind narrow. From now on the kind is seen only where Set says so.
func (s *Sights) SetNarrow(kind schema.GroupKind) {
	s.kinds[kind] = &kindSights{map[string]Sight{}, map[string]Sight{}}
}

// IsNarrow reports whether a kind is narrow: SetNarrow was called for it, and it was not forgotten since.
func (s *Sights) IsNarrow(kind schema.GroupKind) bool { return s.kinds[kind] != nil }

// Set sets the sight of the sources, or copies, or both, of a narrow kind in namespace, or Everywhere. For any other kind it does nothing.
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

func (s *Sights) forget(kind schema.GroupKind) { delete(s.kinds, kind) }

// sees reports whether the operator sees all that a plan for slot rests on: the copies in its namespace, and the sources in these
// namespaces of the forest f.
func (s *Sights) sees(slot Slot, f *forest.Snapshot, sources ...string) bool {
	k := s.kinds[slot.Kind]
	return k == nil || sightIn(k.copies, slot.Namespace) == Seen && k.seesSources(f, sources)
}

// seesSources reports whether the operator sees the sources in these namespaces. A namespace that doesn't exist holds no source.
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
	if all[namespace] = now; now == Awaited {
		delete(all, namespace)
	}
}

// SeesSource reports whether the operator sees the place of the source at slot, so that a source that is missing there does not exist.
func (w *World) SeesSource(slot Slot) bool {
	k := w.Sights.kinds[slot.Kind]
	return k == nil || k.seesSources(w.Forest, []string{slot.Namespace})
}

// AwaitsSight reports whether rails of some kind can't be planned in namespace yet, because the operator doesn't see the copies there or
// the sources above: they are about to be listed, or may not be listed. Rights wait for sight no longer than they wait for missing rails.
func (w *World) AwaitsSight(namespace string) bool {
	if len(w.Sights.kinds) == 0 {
		return false
	}
	from, ok := w.Forest.Sources(namespace)
	if !ok {
		return false
	}
	for kind := range w.Sights.kinds {
		isRail := kind != roleBindings && w.kinds[kind].synced && w.kinds[kind].mode != Remove
		if isRail && !w.Sights.sees(Slot{Kind: kind, Namespace: namespace}, w.Forest, from.Names...) {
			return true
		}
	}
	return false
}

// The rest of this file describes what the operator cannot see, and why.

// isWide reports whether the watch of the whole cluster is synced.
func (w *watchState) isWide() bool { return w.statuses[Everywhere].State == watchset.Synced }

// unseen returns why the operator sees nothing in namespace; the zero Status where the operator sees the objects there, or is about to
// list them.
func (w *watchState) unseen(namespace string) watchset.Status {
	now, tried := w.statuses[namespace]
	wide := w.statuses[Everywhere]
	switch {
	case wide.State == watchset.Synced, now.State == watchset.Synced:
		return watchset.Status{}
	case !tried && wide.State != watchset.Forbidden: // where the watch of the whole cluster is forbidden, each namespace has its own watch
		return wide
	}
	return now
}

// noRoom describes a watch that waits for room.
const noRoom = "not watched, because informers.maxInformers or informers.maxNamespaces is reached: " +
	"in the configuration, raise the one that is reached"

// describeDegraded returns what is wrong with a kind that is degraded, and what to do.
func (k *watchedKind) describeDegraded(after time.Duration) string {
	degraded := fmt.Sprintf("kind %s of group %q is Degraded: ", k.Kind.Kind, k.Group)
	if errors.Is(k.failure, watchset.ErrLimit) {
		return degraded + "it is " + noRoom + "; until there is room, nothing of it is copied or removed"
	}
	answer := "none"
	if k.failure != nil {
		answer = text.Cut(causeOf(k.failure).Error(), longestFailure)
	}
	return fmt.Sprintf("%sthe API server has not listed it for at least %s, so nothing of it is copied or removed until it does; "+
		"repair what serves the kind, such as the conversion webhook of its CRD, or take the kind out of propagation.kinds; the last error: %s",
		degraded, after, answer)
}

// causeOf returns the API server's own error if err, the error of a watch, wraps one; otherwise err.
func causeOf(err error) error {
	if degraded := (*watchset.DegradedError)(nil); errors.As(err, &degraded) && degraded.Cause != nil {
		return degraded.Cause
	}
	return err
}

// describeForbidden returns what is wrong with a kind of scope Cluster that may not be listed or watched cluster-wide, and what to do.
func (k *watchedKind) describeForbidden() string {
	advice := ", or set scope of the kind in propagation.kinds to Auto, so that it is watched where that is allowed"
	if k.Group == rbacv1.GroupName { // kinds of RBAC are always watched in the whole cluster
		advice = ""
	}
	return fmt.Sprintf("%s: forbidden cluster-wide, so nothing of it is copied or removed anywhere; grant the operator list and watch on it "+
		"by a ClusterRoleBinding%s", k.resource.GroupResource(), advice)
}

// DescribeBlind returns a sentence for each kind of which nothing can be seen anywhere, in alphabetical order.
func (s *State) DescribeBlind() []string {
	var all []string
	for _, k := range s.kinds {
		switch k.state {
		case KindDegraded:
			all = append(all, k.describeDegraded(s.settings.DegradedAfter))
		case KindForbidden:
			all = append(all, k.describeForbidden())
		}
	}
	slices.Sort(all)
	return all
}

// unseenPart is what the operator cannot see of a narrow kind in one namespace, and why.
type unseenPart struct {
	resource  schema.GroupResource
	namespace string
	status    watchset.Status
}

// findUnseen returns the narrow kinds of which the operator sees nothing in namespace, or no source in one of the namespaces above.
func (s *State) findUnseen(namespace string) []unseenPart {
	above, _ := s.world.Forest.Sources(namespace)
	var all []unseenPart
	for _, k := range s.kinds {
		if !k.IsNarrow() || k.resource.Resource == "" {
			continue
		}
		for role, w := range k.watches {
			if status := w.unseen(namespace); status.State != "" {
				all = append(all, unseenPart{k.resource.GroupResource(), namespace, status})
			}
			for _, from := range above.Names {
				if status := w.unseen(from); status.State != "" && role.showsSources() {
					all = append(all, unseenPart{k.resource.GroupResource(), from, status})
				}
			}
		}
	}
	return all
}

// DescribeUnseen returns a sentence for each narrow kind whose copies in namespace cannot be judged, because the operator cannot see them
// there, or the sources in a namespace above; in alphabetical order.
func (s *State) DescribeUnseen(namespace string) []string {
	found := map[string]bool{}
	for _, part := range s.findUnseen(namespace) {
		where := ""
		if part.namespace != namespace {
			where = " in namespace " + part.namespace
		}
		found[fmt.Sprintf("%s%s: %s", part.resource, where, DescribeStatus(part.status))] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// DescribeStatus returns why a watch shows nothing, in a few words.
func DescribeStatus(now watchset.Status) string {
	switch {
	case now.State == watchset.Forbidden:
		return "forbidden, missing " + strings.Join(now.Missing, ", ")
	case errors.Is(now.Err, watchset.ErrLimit):
		return noRoom
	case now.Err != nil:
		return text.Cut(now.Err.Error(), longestFailure)
	}
	return strings.ToLower(string(now.State))
}

// LacksRight reports whether a right, or room for more watches, is missing to see a narrow kind in namespace, or its sources in a namespace
// above. A watch that fails for another reason does not count: all watches may fail while the API server is overloaded.
func (s *State) LacksRight(namespace string) bool {
	return slices.ContainsFunc(s.findUnseen(namespace), func(part unseenPart) bool {
		return part.status.State == watchset.Forbidden || errors.Is(part.status.Err, watchset.ErrLimit)
	})
}

// seesAllCopies reports whether the operator knows all copies of narrow kinds in namespace. Of a kind that the API server does not serve
// there are no copies.
func (s *State) seesAllCopies(namespace string) bool {
	for _, k := range s.kinds {
		if !k.IsNarrow() || k.state == KindPending {
			continue
		}
		for role, w := range k.watches {
			if role.showsCopies() && !w.isWide() && w.statuses[namespace].State != watchset.Synced {
				return false
			}
		}
	}
	return true
}
