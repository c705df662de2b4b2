package propagation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
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
	kindPending   kindState = "pending"   // the API server doesn't serve the kind
	kindForbidden kindState = "forbidden" // the operator may not list or watch it
	kindDegraded  kindState = "degraded"  // the API server has not listed the kind for Timing.Degraded, for another reason
)

var kindStates = []kindState{kindSyncing, kindActive, kindPending, kindForbidden, kindDegraded}

// isBlind says whether the operator can see no object of the kind anywhere although the API server serves the kind.
func (s kindState) isBlind() bool { return s == kindForbidden || s == kindDegraded }

// kinds watch every configured kind whenever the API server serves it.
type kinds struct {
	mapper   meta.RESTMapper
	watcher  Watcher
	arrivals *arrivals
	timing   Timing
	tables   *tables
	facts    facts
	set      *watchset.Set
	followed *followed
	// feed makes the sink for one watch of the whole cluster; narrow makes the sink for all watches of a narrow kind (see Kind.isNarrow) with
	// the same role. vanished is called when the API server no longer serves the kind.
	feed     func(run *kindRun, r role, vanished func()) *feed
	narrow   func(run *kindRun, r role, vanished func()) *narrowFeed
	watching sync.WaitGroup // the goroutines of all kinds
	// report has every namespace reported anew, because the operator can't see a kind any more, or can see the kind again. The caller of
	// report doesn't hold mu.
	report func()

	mu   sync.Mutex // guards runs and, in each kindRun, mapping and all below; while it is held, no other lock but that of tables is taken
	runs map[schema.GroupKind]*kindRun
}

// kindRun is a kind that is being watched.
type kindRun struct {
	kind Kind

	mapping *meta.RESTMapping // nil until the API server has served the kind; guarded by kinds.mu, as is all below
	narrow  []*narrowFeed     // the sinks of a narrow kind, one for each role; nil for other kinds
	states  map[role]kindState
	state   kindState // of all watches together
	synced  bool      // the kind has been active since it was last found
	failure error     // of the last list or watch since the kind was last active; nil if none failed
}

// role says which objects of a kind one watch brings.
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

// start watches these kinds until ctx is done.
func (k *kinds) start(ctx context.Context, configured []Kind) {
	runs := map[schema.GroupKind]*kindRun{}
	for _, kind := range configured {
		runs[kind.GroupKind()] = &kindRun{kind: kind, state: kindSyncing}
	}
	k.mu.Lock()
	k.runs = runs
	k.mu.Unlock()
	if slices.ContainsFunc(configured, Kind.isNarrow) {
		k.followed.needed.Store(true)
		k.followed.refresh()
	}
	for _, run := range runs {
		k.watching.Go(func() { k.watchKind(ctx, run) })
		k.watching.Go(func() { k.degradeLate(ctx, run) })
	}
}

// wait returns when the last watch has ended.
func (k *kinds) wait() { k.watching.Wait() }

// list returns the kinds that are configured, in no order.
func (k *kinds) list() []*kindRun {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.runs))
}

// watchKind watches a kind whenever the API server serves the kind, until ctx is done. While the kind is not served, watchKind asks the API
// server again as soon as a CRD has changed, and else with a back-off.
func (k *kinds) watchKind(ctx context.Context, run *kindRun) {
	first := wait.Backoff{Duration: k.timing.KindMin, Cap: k.timing.KindMax, Factor: 2, Jitter: 0.2, Steps: 32}
	backoff := first
	for ctx.Err() == nil {
		changed := k.arrivals.changed()
		mapping, err := apianswer.MappingOf(k.mapper, run.kind.GroupVersionKind)
		switch {
		case err == nil:
			served := k.watchServed(ctx, run, mapping)
			changed = k.arrivals.changed() // a CRD that changed during the watch is no reason to ask at once
			if served {
				backoff = wait.Backoff{Duration: k.timing.KindGone, Cap: k.timing.KindMax, Factor: 2, Jitter: 0.2, Steps: 32}
			}
		case meta.IsNoMatchError(err):
			k.setPending(run)
		default:
			k.noteFailure(run, err)
			ctrl.Log.WithName("propagation").Error(err, "looking for a kind", "kind", run.kind.GroupKind().String())
		}
		// The mapper goes on answering for kinds that are no longer served, and doesn't learn of a version that was added to a group which it
		// knows.
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
	var watching sync.WaitGroup
	if run.kind.isNarrow() {
		for _, f := range k.beginNarrow(run, roles, cancel) {
			watching.Go(func() { k.watchNarrow(ctx, mapping.Resource, f) })
		}
		roles = nil
	}
	for _, r := range roles {
		sink := k.feed(run, r, cancel)
		watching.Go(func() { k.watcher.ListAndWatch(ctx, mapping.Resource, selectors[r], sink) })
	}
	watching.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return run.synced
}

// beginNarrow makes the sinks of a narrow kind, one for each role.
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

// setWatch notes the state of one watch of a kind. When this state makes the whole kind active, setWatch returns the keys of all objects of
// the kind.
func (k *kinds) setWatch(run *kindRun, r role, now kindState) []key {
	keys, news := k.setWatchState(run, r, now)
	if news {
		k.report()
	}
	return keys
}

// setWatchState does what setWatch does, but for the report. news says that the operator has just lost sight of the whole kind, or got sight
// of it again.
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
	if keys = k.facts.keysOf(gk); gk == roles { // until now, the plans of RoleBindings could not ask for Roles
		keys = append(keys, k.facts.keysOf(rbacv1.SchemeGroupVersion.WithKind("RoleBinding").GroupKind())...)
	}
	return keys, news
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

// modeOf returns the configured mode of a kind; OptIn for a kind that is not configured.
func (k *kinds) modeOf(gk schema.GroupKind) propagate.KindMode {
	k.mu.Lock()
	defer k.mu.Unlock()
	if run := k.runs[gk]; run != nil {
		return run.kind.Mode
	}
	return propagate.OptIn
}

// mappingOf returns the REST mapping of a kind; nil for a kind that the API server has not served since the kind was configured.
func (k *kinds) mappingOf(gk schema.GroupKind) *meta.RESTMapping {
	k.mu.Lock()
	defer k.mu.Unlock()
	if run := k.runs[gk]; run != nil {
		return run.mapping
	}
	return nil
}

// degrade makes a kind Degraded that is still syncing, and says so once.
func (k *kinds) degrade(run *kindRun) {
	k.mu.Lock()
	late := run.state == kindSyncing
	if late {
		run.state = kindDegraded
		ctrl.Log.WithName("propagation").Info(run.describeDegraded(k.timing.Degraded))
	}
	k.mu.Unlock()
	if late {
		k.report()
	}
}

// noteFailure keeps why a kind can't be listed or watched.
func (k *kinds) noteFailure(run *kindRun, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	run.failure = err
}

// describeBlind is a sentence for each kind of which nothing can be seen anywhere, in alphabetical order.
func (k *kinds) describeBlind() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, run := range k.runs {
		switch run.state {
		case kindDegraded:
			all = append(all, run.describeDegraded(k.timing.Degraded))
		case kindForbidden:
			all = append(all, fmt.Sprintf("%s: forbidden cluster-wide, so nothing of it is copied or removed anywhere; grant the operator list and watch on it by a "+
				"ClusterRoleBinding%s", run.mapping.Resource.GroupResource(), run.adviseScope()))
		}
	}
	slices.Sort(all)
	return all
}

// narrowFeeds returns the sinks of all narrow kinds that were served, by resource.
func (k *kinds) narrowFeeds() map[schema.GroupResource][]*narrowFeed {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[schema.GroupResource][]*narrowFeed{}
	for _, run := range k.runs {
		if len(run.narrow) > 0 {
			all[run.mapping.Resource.GroupResource()] = run.narrow
		}
	}
	return all
}

func (k *kinds) feedsOf(run *kindRun) []*narrowFeed {
	k.mu.Lock()
	defer k.mu.Unlock()
	return run.narrow
}
