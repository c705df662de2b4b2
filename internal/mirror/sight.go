package mirror

import "github.com/warren-tenancy/warren/internal/forest"

// Knowledge is what a watch lets one conclude from what it doesn't show.
type Knowledge int

// What a watch lets one conclude.
const (
	Incomplete Knowledge = iota // no list was complete yet: what isn't known may exist
	Complete                    // what isn't known doesn't exist
	Blind                       // nothing is watched: it is forbidden, not served, or there is no room
)

// sight is what one watch has shown as a whole.
type sight struct {
	knowledge Knowledge
	reason    string
	shown     string // the highest resourceVersion of an object, an end or a list
}

func (s *sight) advance(version string) {
	if s.shown == "" || forest.IsNewer(version, s.shown) {
		s.shown = version
	}
}

// isPast reports whether the watch has shown all that happened up to a version (R4).
func (s *sight) isPast(version string) bool {
	return s.knowledge == Complete && !forest.IsNewer(version, s.shown)
}

// Knowledge returns what may be concluded about objects of a namespace that aren't known, and why if the watch is Blind.
func (t *Table[O, V]) Knowledge(namespace string) (Knowledge, string) {
	s := t.sightOf(namespace)
	return s.knowledge, s.reason
}

// SetBlind takes in that a watch, of a namespace or Everywhere, shows nothing, and why: what it has shown no longer counts.
func (t *Table[O, V]) SetBlind(namespace, reason string) (changes []Change[V]) {
	*t.sightAt(namespace) = sight{knowledge: Blind, reason: reason}
	for p, was := range t.store.In(namespace) {
		_, _, left := t.look(p)
		changes = append(changes, t.drop(p, was, trace{open: left.open})) // the write may be carried out yet (R9)
	}
	for p, left := range t.tracesOf(namespace) {
		t.setTrace(p, trace{open: left.open})
	}
	return changes
}

// sightAt returns the sight of a watch of a namespace, or Everywhere.
func (t *Table[O, V]) sightAt(namespace string) *sight {
	if t.sights[namespace] == nil {
		t.sights[namespace] = &sight{}
	}
	return t.sights[namespace]
}

// sightOf returns the sight of the watch that shows a namespace: its own, or that of the whole cluster.
func (t *Table[O, V]) sightOf(namespace string) *sight {
	if s := t.sights[namespace]; s != nil {
		return s
	}
	return t.sightAt(Everywhere)
}

// EndWatch takes in that a namespace has no watch of its own any more.
func (t *Table[O, V]) EndWatch(namespace string) { delete(t.sights, namespace) }

// CountWatches returns of how many watches something is remembered.
func (t *Table[O, V]) CountWatches() int { return len(t.sights) }
