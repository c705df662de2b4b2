package copyengine

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// watchedKind is a configured kind, with what its watches show.
type watchedKind struct {
	Kind
	watches map[Role]*watchState
	// resource and served are zero until the API server has served the kind.
	resource schema.GroupVersionResource
	served   schema.GroupVersionKind
	state    copies.KindState // of all watches together
	failure  error            // why the kind was not listed; nil if it is listed, or if no error is known
}

// watchState is the state of one watch.
type watchState struct {
	state copies.KindState
	// statuses holds the status of the watch of a narrow kind in each namespace, and at Everywhere that in the whole cluster. A namespace in
	// which no list was tried has no status. Pending means that informers.maxInformers or informers.maxNamespaces leaves no room.
	statuses  map[string]watchset.Status
	notServed int  // how many of the statuses are NotServed
	complete  bool // every namespace that is to be watched has had a status
}

func newWatchedKind(kind Kind) *watchedKind {
	k := &watchedKind{Kind: kind, state: copies.KindSyncing, watches: map[Role]*watchState{}}
	for _, role := range kind.Roles() {
		k.watches[role] = &watchState{state: copies.KindSyncing, statuses: map[string]watchset.Status{}}
	}
	return k
}

// Roles returns the roles of the watches that the kind needs.
func (k Kind) Roles() []Role {
	if k.Mode == copies.All {
		return []Role{SourcesAndCopies}
	}
	return []Role{SourcesAlone, CopiesAlone}
}

func (c WatchChanged) applyTo(s *State) {
	k := s.kinds[c.Kind]
	w := k.watches[c.Role]
	s.setResource(k, c.Status)
	if c.Status.Err != nil {
		k.failure = c.Status.Err
	}
	if !k.IsNarrow() {
		s.setWatchState(k, w, w.state.After(c.Status))
		return
	}
	s.changeNarrowWatch(k, w, c)
}

// setResource records by which resource and in which version the API server serves a kind. In another version, sources may have other
// content, so they are all read again.
func (s *State) setResource(k *watchedKind, now watchset.Status) {
	if now.Resource.Resource == "" || now.Resource == k.resource {
		return
	}
	isFirst := k.resource.Resource == ""
	if k.resource, k.served = now.Resource, now.Kind; isFirst {
		return
	}
	sources, _ := s.world.KindIn(k.GroupKind(), copies.Everywhere)
	for _, slot := range sources {
		delete(s.bodies, slot)
		s.world.Sources.At(slot).Content = ""
		s.queueKeys(sourceTask(slot))
	}
}

// changeNarrowWatch takes in the status of a watch of a narrow kind in one namespace or, in scope Auto, in the whole cluster.
func (s *State) changeNarrowWatch(k *watchedKind, w *watchState, c WatchChanged) {
	namespace, now := c.Namespace, c.Status
	wasWide := w.isWide()
	changed := w.record(namespace, now)
	ended := now.State == watchset.Pending && now.Err == nil && namespace != copies.Everywhere
	switch {
	case ended && wasWide: // the watch of the whole cluster shows what this watch has shown
		s.setSight(c.Watch, namespace, copies.Awaited)
	case ended:
		s.forgetNamespace(c.Watch, namespace)
	default:
		s.setSight(c.Watch, namespace, sightOf(now))
	}
	if wasWide && !w.isWide() || now.State == watchset.Synced && len(s.departed) > 0 {
		s.emitOutput(FollowSoon{})
	}
	if changed && namespace == copies.Everywhere && now.State == watchset.Forbidden { // a degraded watch may recover without a new list
		s.forgetElsewhere(c.Watch)
	}
	s.settleWatch(k, w)
	if changed {
		s.reportVisibility(namespace)
	}
}

// sightOf returns what the status of a watch means for its namespace.
func sightOf(now watchset.Status) copies.Sight {
	switch now.State {
	case watchset.Synced:
		return copies.Seen
	case watchset.Syncing:
		return copies.Awaited
	}
	return copies.Unseen
}

// record keeps the status of a watch in a namespace, and reports whether there is something new to report. Syncing is not kept: the
// status before a new try counts until the try has ended.
func (w *watchState) record(namespace string, now watchset.Status) (changed bool) {
	if now.State == watchset.Syncing {
		return false
	}
	was, known := w.statuses[namespace]
	if was.State == watchset.NotServed {
		w.notServed--
	}
	if now.State == watchset.Pending && now.Err == nil {
		delete(w.statuses, namespace)
		return known && was.State != watchset.Synced
	}
	if now.State == watchset.NotServed {
		w.notServed++
	}
	w.statuses[namespace] = now
	return known && was.State != now.State || !known && now.State != watchset.Synced || !slices.Equal(was.Missing, now.Missing)
}

// settleWatch sets the state of a watch of a narrow kind (see Kind.IsNarrow). The watch is pending while one of its statuses is NotServed.
// Else it becomes active when hasEveryStatus reports true, and stays active until a status is NotServed. Before that it is syncing.
func (s *State) settleWatch(k *watchedKind, w *watchState) {
	state := copies.KindSyncing
	switch {
	case w.notServed > 0:
		w.complete, state = false, copies.KindPending
	case w.complete || s.hasEveryStatus(k, w):
		w.complete, state = true, copies.KindActive
	}
	s.setWatchState(k, w, state)
}

// hasEveryStatus reports whether every namespace that is to be watched has a status. Forbidden counts, too, because readiness depends on no
// right. In scope Auto, a status of the watch of the whole cluster counts for all namespaces, unless it is Forbidden.
func (s *State) hasEveryStatus(k *watchedKind, w *watchState) bool {
	wide, tried := w.statuses[copies.Everywhere]
	if k.Scope == Auto && (!tried || wide.State != watchset.Forbidden) {
		return tried
	}
	for namespace := range s.followed {
		if _, tried := w.statuses[namespace]; !tried {
			return false
		}
	}
	return s.followed != nil
}

// setWatchState sets the state of one watch, and with it that of its kind. When the kind becomes active, all its sources and copies are
// queued.
func (s *State) setWatchState(k *watchedKind, w *watchState, now copies.KindState) {
	w.state = now
	was, state := k.state, k.combineStates()
	if k.state = state; was == state {
		return
	}
	if state == copies.KindActive {
		k.failure = nil
	}
	gk := k.GroupKind()
	s.world.SetKind(gk, k.Mode, state == copies.KindActive)
	if state == copies.KindDegraded {
		s.emitOutput(copies.Log{Message: k.describeDegraded(s.settings.DegradedAfter)})
	}
	if was.IsBlind() || state.IsBlind() {
		s.reportEverywhere()
	}
	if state != copies.KindActive {
		return
	}
	s.queueKind(gk)
	if gk == copies.RoleKind { // until now, the plans of RoleBindings could not ask for Roles
		s.queueKind(copies.RoleBindingKind)
	}
}

// combineStates returns the state of the kind: active if all watches are active, else the state of a watch that is not active, and syncing
// only if no other state is left. A degraded kind does not become syncing, but stays degraded.
func (k *watchedKind) combineStates() copies.KindState {
	state := copies.KindActive
	for _, w := range k.watches {
		if w.state != copies.KindActive && (state == copies.KindActive || state == copies.KindSyncing) {
			state = w.state
		}
	}
	if state == copies.KindSyncing && k.state == copies.KindDegraded {
		return copies.KindDegraded
	}
	return state
}

// queueKind queues all sources and copies of a kind. If this replica leads, and not everything was worked on, they are first work.
func (s *State) queueKind(gk schema.GroupKind) {
	sources, copied := s.world.KindIn(gk, copies.Everywhere)
	keys := slotKeys(copied)
	for _, slot := range sources {
		keys = append(keys, sourceTask(slot))
	}
	if s.measured.leading && !s.troubles.complete {
		s.troubles.first.add(keys...)
	}
	s.queueKeys(keys...)
}

// areSyncing reports whether objects of some kind may exist that were not listed yet.
func (s *State) areSyncing() bool {
	for _, k := range s.kinds {
		if k.state == copies.KindSyncing {
			return true
		}
	}
	return false
}

// CheckSynced returns an error that names a kind that is not listed yet; nil if there is none. A kind that is not served, that may not be
// listed, or that is degraded, does not count.
func (s *State) CheckSynced() error {
	for gk, k := range s.kinds {
		if k.state == copies.KindSyncing {
			return fmt.Errorf("%s is not synced yet", gk)
		}
	}
	return nil
}

// FindScrubParts returns what a pass of the scrub is to read: the copies of each active kind that is not in mode Remove. They are read all
// together where the whole cluster is watched, else one namespace after the other.
func (s *State) FindScrubParts() []copies.ScrubPart {
	var parts []copies.ScrubPart
	for _, k := range s.kinds {
		if k.Mode == copies.Remove || k.state != copies.KindActive || k.resource.Resource == "" {
			continue
		}
		if k.isWide() {
			parts = append(parts, copies.ScrubPart{Kind: k.served, Resource: k.resource, Namespace: copies.Everywhere})
			continue
		}
		for namespace := range s.followed {
			parts = append(parts, copies.ScrubPart{Kind: k.served, Resource: k.resource, Namespace: namespace})
		}
	}
	return parts
}

// isWide reports whether the operator watches the kind in the whole cluster.
func (k *watchedKind) isWide() bool {
	for _, w := range k.watches {
		if k.IsNarrow() && !w.isWide() {
			return false
		}
	}
	return true
}
