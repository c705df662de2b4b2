package propagation

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// kindState is how far the watches of a kind are.
type kindState string

const (
	kindSyncing   kindState = "syncing"
	kindActive    kindState = "active"
	kindPending   kindState = "pending"   // the API server doesn't serve it
	kindForbidden kindState = "forbidden" // the operator may not list or watch it
	kindDegraded  kindState = "degraded"  // it could not be listed for Timing.Degraded, for another reason
)

var kindStates = []kindState{kindSyncing, kindActive, kindPending, kindForbidden, kindDegraded}

// isBlind says whether nothing of the kind can be seen anywhere although the API server serves it.
func (s kindState) isBlind() bool { return s == kindForbidden || s == kindDegraded }

// kinds watch every configured kind whenever the API server serves it.
type kinds struct {
	mapper   meta.RESTMapper
	observer Observer
	arrivals *arrivals
	timing   Timing
	tables   *tables
	set      *watchset.Set
	followed *followed
	// feed makes the sink of one watch of the whole cluster, narrow that of all watches that go as far as the rights do.
	feed   func(run *kindRun, r role, vanished func()) *feed
	narrow func(run *kindRun, r role, vanished func()) *narrowFeed
	// report has every namespace reported anew, because a kind can't be seen any more, or can again. It is called without mu.
	report func()

	mu   sync.Mutex // guards runs and the fields of each kindRun that say so; only the tables are asked while it is held
	runs map[schema.GroupKind]*kindRun
}

// kindRun is a kind that is being watched.
type kindRun struct {
	kind   Kind
	cancel context.CancelFunc
	done   sync.WaitGroup

	mapping *meta.RESTMapping // nil while the kind is not served; guarded by kinds.mu, as is all below
	narrow  []*narrowFeed     // where the kind is watched as far as the rights go
	states  map[role]kindState
	state   kindState // of all watches together
	synced  bool      // the kind has been active since it was last found
	failure error     // of the last list or watch since the kind was last active; nil if none failed
}

// role is what a watch brings.
type role int8

const (
	sourcesAndCopies role = iota // every object of the kind
	sourcesAlone                 // those with the label propagate
	copiesAlone                  // those with the label inherited-from
)

var selectors = map[role]string{
	sourcesAndCopies: "",
	sourcesAlone:     v1alpha1.LabelPropagate,
	copiesAlone:      v1alpha1.LabelInheritedFrom,
}

// start watches these kinds until ctx is done, or stop is called.
func (k *kinds) start(ctx context.Context, configured []Kind) {
	runs, begin := map[schema.GroupKind]*kindRun{}, []func(){}
	for _, kind := range configured {
		ctx, cancel := context.WithCancel(ctx)
		run := &kindRun{kind: kind, cancel: cancel, state: kindSyncing}
		runs[kind.GroupKind()] = run
		begin = append(begin, func() {
			run.done.Go(func() { k.watchKind(ctx, run) })
			run.done.Go(func() { k.degradeLate(ctx, run) })
		})
	}
	k.mu.Lock()
	k.runs = runs
	k.mu.Unlock()
	if slices.ContainsFunc(configured, Kind.isNarrow) {
		k.followed.needed.Store(true)
		k.followed.refresh()
	}
	for _, watch := range begin {
		watch()
	}
}

// stop ends all watches, and returns when the last one has ended.
func (k *kinds) stop() {
	for _, run := range k.list() {
		run.cancel()
		run.done.Wait()
	}
}

// list are the kinds that are configured.
func (k *kinds) list() []*kindRun {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.runs))
}

// watchKind watches a kind whenever the API server serves it, until ctx is done. A CRD that comes announces itself;
// otherwise the API server is asked again with a back-off.
func (k *kinds) watchKind(ctx context.Context, run *kindRun) {
	first := wait.Backoff{Duration: k.timing.KindMin, Cap: k.timing.KindMax, Factor: 2, Jitter: 0.2, Steps: 32}
	backoff := first
	for ctx.Err() == nil {
		changed := k.arrivals.changed()
		mapping, err := apianswer.MappingOf(k.mapper, run.kind.GroupVersionKind)
		switch {
		case err == nil:
			served := k.watchServed(ctx, run, mapping)
			changed = k.arrivals.changed() // what has changed meanwhile is no reason to look again
			if served {
				backoff = wait.Backoff{Duration: k.timing.KindGone, Cap: k.timing.KindMax, Factor: 2, Jitter: 0.2, Steps: 32}
			}
		case meta.IsNoMatchError(err):
			k.setPending(run)
		default:
			k.noteFailure(run, err)
			ctrl.Log.WithName("propagation").Error(err, "looking for a kind", "kind", run.kind.GroupKind().String())
		}
		// The mapper keeps what is served no more, and of a group that it knows no version that came later.
		meta.MaybeResetRESTMapper(k.mapper)
		select {
		case <-ctx.Done():
		case <-changed:
			backoff = first
		case <-time.After(backoff.Step()):
		}
	}
}

// watchServed watches a kind until ctx is done or the API server says that it doesn't serve the kind any more. synced says
// whether all objects of the kind were known at some time.
func (k *kinds) watchServed(ctx context.Context, run *kindRun, mapping *meta.RESTMapping) (synced bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	roles := []role{sourcesAlone, copiesAlone}
	if run.kind.Mode == propagate.All {
		roles = []role{sourcesAndCopies}
	}
	k.setServed(run, mapping, roles)
	var observers sync.WaitGroup
	if run.kind.isNarrow() {
		for _, f := range k.beginNarrow(run, roles, cancel) {
			observers.Go(func() { k.observeNarrow(ctx, mapping.Resource, f) })
		}
		roles = nil
	}
	for _, r := range roles {
		sink := k.feed(run, r, cancel)
		observers.Go(func() { k.observer.Observe(ctx, mapping.Resource, selectors[r], sink) })
	}
	observers.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return run.synced
}

// beginNarrow makes the sinks of a kind that is watched as far as the rights go.
func (k *kinds) beginNarrow(run *kindRun, roles []role, vanished func()) []*narrowFeed {
	k.tables.setNarrow(run.kind.GroupKind())
	var feeds []*narrowFeed
	for _, r := range roles {
		feeds = append(feeds, k.narrow(run, r, vanished))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	run.narrow = feeds
	return feeds
}

func (k *kinds) setPending(run *kindRun) {
	k.mu.Lock()
	defer k.mu.Unlock()
	run.state = kindPending
}

func (k *kinds) setServed(run *kindRun, mapping *meta.RESTMapping, roles []role) {
	k.mu.Lock()
	defer k.mu.Unlock()
	run.mapping, run.state, run.synced, run.states = mapping, kindSyncing, false, map[role]kindState{}
	for _, r := range roles {
		run.states[r] = kindSyncing
	}
}

// setWatch notes how far one watch of a kind is. When that makes the kind complete, it returns the keys of all its objects.
func (k *kinds) setWatch(run *kindRun, r role, now kindState) []key {
	keys, news := k.setWatchState(run, r, now)
	if news {
		k.report()
	}
	return keys
}

// setWatchState does what setWatch does. news says that from now on, or no longer, nothing of the kind can be seen anywhere.
func (k *kinds) setWatchState(run *kindRun, r role, now kindState) (keys []key, news bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	run.states[r] = now
	state := kindActive
	for _, one := range run.states {
		if one != kindActive && (state == kindActive || state == kindSyncing) {
			state = one
		}
	}
	was := run.state
	if state == kindSyncing && was == kindDegraded {
		state = kindDegraded // one watch works, another doesn't yet
	}
	if run.state, run.synced = state, run.synced || state == kindActive; state == kindActive {
		run.failure = nil
	}
	gk := run.kind.GroupKind()
	k.tables.setKind(gk, run.kind.Mode, state == kindActive)
	news = was != state && (was.isBlind() || state.isBlind())
	if state != kindActive || was == kindActive {
		return nil, news
	}
	return k.tables.keysOf(gk), news
}

// stateOf is how far the watches of a kind are; syncing for a kind that is not watched yet.
func (k *kinds) stateOf(gk schema.GroupKind) kindState {
	k.mu.Lock()
	defer k.mu.Unlock()
	if run := k.runs[gk]; run != nil {
		return run.state
	}
	return kindSyncing
}

// areSyncing says whether objects of some kind may exist that were not listed yet.
func (k *kinds) areSyncing() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, run := range k.runs {
		if run.state == kindSyncing {
			return true
		}
	}
	return false
}

// modeOf is how a kind is propagated.
func (k *kinds) modeOf(gk schema.GroupKind) propagate.KindMode {
	k.mu.Lock()
	defer k.mu.Unlock()
	if run := k.runs[gk]; run != nil {
		return run.kind.Mode
	}
	return propagate.OptIn
}

// mappingOf is where objects of a kind are written; nil while the API server doesn't serve the kind.
func (k *kinds) mappingOf(gk schema.GroupKind) *meta.RESTMapping {
	k.mu.Lock()
	defer k.mu.Unlock()
	if run := k.runs[gk]; run != nil {
		return run.mapping
	}
	return nil
}
