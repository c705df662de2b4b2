package copyengine

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// watches know what the operator sees: of each kind, in which namespaces.
type watches struct {
	*core
	first *firstWork
	kinds map[schema.GroupKind]*watchedKind
	// followed are the namespaces in which narrow kinds are watched. departed are the namespaces that have left the
	// forest and may hold copies that no watch has shown. Both have the UIDs of the namespaces. The annotation
	// ancestry, which the operator removes later, shows that a namespace has left.
	followed, departed map[string]types.UID
	// writing counts, by namespace, the writes without an answer yet. Each may make a copy that the World does not have.
	writing map[string]int
}

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
	// statuses holds the status of the watch of a narrow kind in each namespace, and at Everywhere that in the whole
	// cluster. A namespace in which no list was tried has no status. Pending means that informers.maxInformers or
	// informers.maxNamespaces leaves no room.
	statuses  map[string]watchset.Status
	notServed int  // how many of the statuses are NotServed
	complete  bool // every namespace that is to be watched has had a status
}

func newWatches(c *core, first *firstWork) *watches {
	ws := &watches{core: c, first: first, kinds: map[schema.GroupKind]*watchedKind{}, departed: map[string]types.UID{},
		writing: map[string]int{}}
	for _, kind := range c.settings.Kinds {
		ws.kinds[kind.GroupKind()] = newWatchedKind(kind)
		if kind.IsNarrow() {
			c.world.Sights.SetNarrow(kind.GroupKind())
		}
	}
	return ws
}

// kindOf returns a kind; nil if it is not configured.
func (ws *watches) kindOf(gk schema.GroupKind) *watchedKind { return ws.kinds[gk] }

// queueAll queues all sources and copies.
func (ws *watches) queueAll() {
	for gk := range ws.kinds {
		ws.queueKind(gk)
	}
}

func newWatchedKind(kind Kind) *watchedKind {
	k := &watchedKind{Kind: kind, state: copies.KindSyncing, watches: map[Role]*watchState{}}
	for _, role := range kind.Roles() {
		k.watches[role] = &watchState{state: copies.KindSyncing, statuses: map[string]watchset.Status{}}
	}
	return k
}

// recordFailure records why a kind was not listed; it does nothing if err is nil.
func (k *watchedKind) recordFailure(err error) {
	if err != nil {
		k.failure = err
	}
}

// setResource records by which resource and in which version the API server serves a kind. It reports whether that is
// another version than before.
func (k *watchedKind) setResource(now watchset.Status) (changed bool) {
	if now.Resource.Resource == "" || now.Resource == k.resource {
		return false
	}
	changed = k.resource.Resource != ""
	k.resource, k.served = now.Resource, now.Kind
	return changed
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

// recordStatus keeps the status of a watch in a namespace, and reports whether there is something new to report.
// Syncing is not kept: the status before a new try counts until the try has ended.
func (w *watchState) recordStatus(namespace string, now watchset.Status) (changed bool) {
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

// setNarrowState sets the state of a watch of a narrow kind (see Kind.IsNarrow). The watch is pending while one of its
// statuses is NotServed. Else it becomes active when hasEveryStatus reports true, and stays active until a status is
// NotServed. Before that it is syncing.
func (ws *watches) setNarrowState(k *watchedKind, w *watchState) {
	state := copies.KindSyncing
	switch {
	case w.notServed > 0:
		w.complete, state = false, copies.KindPending
	case w.complete || ws.hasEveryStatus(k, w):
		w.complete, state = true, copies.KindActive
	}
	ws.setState(k, w, state)
}

// hasEveryStatus reports whether every namespace that is to be watched has a status. Forbidden counts, too, because
// readiness depends on no right. In scope Auto, a status of the watch of the whole cluster counts for all namespaces,
// unless it is Forbidden.
func (ws *watches) hasEveryStatus(k *watchedKind, w *watchState) bool {
	wide, tried := w.statuses[copies.Everywhere]
	// In scope Auto, namespaces are watched one by one only where the watch of the whole cluster is forbidden.
	if k.Scope == Auto && (!tried || wide.State != watchset.Forbidden) {
		return tried
	}
	for namespace := range ws.followed {
		if _, tried := w.statuses[namespace]; !tried {
			return false
		}
	}
	return ws.followed != nil
}

// setState sets the state of one watch, and with it that of its kind. When the kind becomes active, all its sources and
// copies are queued.
func (ws *watches) setState(k *watchedKind, w *watchState, now copies.KindState) {
	w.state = now
	was, state := k.state, k.combineStates()
	if k.state = state; was == state {
		return
	}
	if state == copies.KindActive {
		k.failure = nil
	}
	gk := k.GroupKind()
	ws.world.SetKind(gk, k.Mode, state == copies.KindActive)
	ws.queueHeldBack()
	if state == copies.KindDegraded {
		ws.emitOutput(copies.Log{Message: k.describeDegraded(ws.settings.DegradedAfter)})
	}
	// What is blind concerns every namespace, so all reports change.
	if was.IsBlind() || state.IsBlind() {
		ws.reportEverywhere()
	}
	if state != copies.KindActive {
		return
	}
	ws.queueKind(gk)
	if gk == copies.RoleKind { // until now, the plans of RoleBindings could not ask for Roles
		ws.queueKind(copies.RoleBindingKind)
	}
}

// combineStates returns the state of the kind: active if all watches are active, else the state of a watch that is not
// active, and syncing only if no other state is left. A degraded kind does not become syncing, but stays degraded.
func (k *watchedKind) combineStates() copies.KindState {
	state := copies.KindActive
	for _, w := range k.watches {
		if w.state != copies.KindActive && (state == copies.KindActive || state == copies.KindSyncing) {
			state = w.state
		}
	}
	// A new try to list a kind shows nothing before it has ended.
	if state == copies.KindSyncing && k.state == copies.KindDegraded {
		return copies.KindDegraded
	}
	return state
}

// queueKind queues all sources and copies of a kind. If this replica leads, and not everything was worked on, they are
// first work.
func (ws *watches) queueKind(gk schema.GroupKind) {
	sources, copied := ws.world.KindIn(gk, copies.Everywhere)
	keys := slotKeys(copied)
	for _, slot := range sources {
		keys = append(keys, sourceTask(slot))
	}
	if ws.leading {
		ws.first.addKeys(keys...)
	}
	ws.queueKeys(keys...)
}

// areSyncing reports whether objects of some kind may exist that were not listed yet.
func (ws *watches) areSyncing() bool {
	for _, k := range ws.kinds {
		if k.state == copies.KindSyncing {
			return true
		}
	}
	return false
}

func (ws *watches) checkSynced() error {
	for gk, k := range ws.kinds {
		if k.state == copies.KindSyncing {
			return fmt.Errorf("%s is not synced yet", gk)
		}
	}
	return nil
}

func (ws *watches) findScrubParts() []copies.ScrubPart {
	var parts []copies.ScrubPart
	for _, k := range ws.kinds {
		if k.Mode == copies.Remove || k.state != copies.KindActive || k.resource.Resource == "" {
			continue
		}
		if k.isWide() {
			parts = append(parts, copies.ScrubPart{Kind: k.served, Resource: k.resource, Namespace: copies.Everywhere})
			continue
		}
		for namespace := range ws.followed {
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
