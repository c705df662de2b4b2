// Package propagation copies labelled objects (in mode All: every object of a kind) from a namespace to all namespaces below it, and from a
// template to all namespaces that reference it, and keeps the copies as their sources are.
//
// The words of this package: a source is an object that is propagated; a copy is an object that the operator wrote from a source. A slot is
// the place (kind, namespace, name) of one copy, whether or not the copy exists. A key is one piece of work in the queue: a slot, a source, a
// namespace, or the limits of a tree. A feed enters the events of one watch in the tables. RoleBindings give rights; rails are the copies of
// all other kinds, such as quotas and network policies, which keep those rights in bounds. A narrow kind is one with scope Namespaces or
// Auto: the operator watches such a kind only where its own RBAC allows, and sight says whether the operator can see the objects of a narrow
// kind in a namespace.
//
// The way of a changed source: the watch of Secrets (watch.go) brings the new metadata of a Secret to a feed (feed.go), which enters the
// metadata in the tables (tables.go) and queues a key (queue.go). A worker reads the source once (sources.go) and queues the slots below the
// source. For each slot a worker asks the planner what to do, waits for removals (removals.go), for rails (rails.go) and, in a tree with
// limits, until all copies are counted (limits.go), and sends one guarded write (copies.go, with the Writer of internal/copying). The engine
// notes and reports what can't be written (failures.go, troubles.go, notices.go).
//
// The way of a move: the view calls setForest (below), which queues the namespaces whose place or copies may differ. For each of them a
// worker queues its slots (queueSlotsIn). The planner says Delete for a copy whose source's namespace was above before and is no longer
// (above.go confirms that), and WaitingForRemoval for whatever would be written there meanwhile, which puts up a barrier (removals.go). When
// the watch shows that the copies are gone, the feed has removals.release queue the namespace again, and the new copies are written.
// movetimes.go only measures how long this takes.
package propagation

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Engine propagates: it watches on every replica and writes on the leader. It wires the types that do so, and has no state
// of its own.
type Engine struct {
	Options
	settings *Settings
	tables   *tables
	facts    facts
	kinds    *kinds
	queue    *queue
	sources  *sources
	copies   *copies
	removals *removals
	rails    *rails
	limits   *limits
	troubles *troubles
	scrub    *scrub
	measure  *measure
	set      *watchset.Set
	followed *followed
}

// New returns an engine that reads and writes with o.Config.
func New(o Options, s Settings) (*Engine, error) {
	w, err := copying.NewWriter(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client for copies: %w", err)
	}
	watcher, err := newMetadataWatcher(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client for watches: %w", err)
	}
	set, err := watchset.New(o.Config, o.Informers)
	if err != nil {
		return nil, err
	}
	if o.Unprotected == nil {
		o.Unprotected = func() bool { return false }
	}
	e := &Engine{Options: o, settings: &s, measure: newMeasure(), set: set}
	b, r := newBodies(), newRepairs()
	e.tables = newTables(o.View.Snapshot(), s.Rules, b)
	e.facts = facts{e.tables}
	e.followed = newFollowed(o.View.Snapshot, e.facts.holdsCopies)
	e.queue = newQueue(e.facts)
	e.troubles = newTroubles(o, e.queue)
	e.removals = newRemovals(e.facts, e.queue, e.troubles, o.Timing.Stuck)
	e.kinds = &kinds{
		mapper: o.Mapper, watcher: watcher, arrivals: newArrivals(), timing: o.Timing, tables: e.tables, facts: e.facts, report: e.troubles.tellEverywhere,
		set: set, followed: e.followed,
	}
	e.followed.sees = e.kinds.seeCopies
	e.kinds.feed = func(run *kindRun, role role, vanished func()) *feed {
		return &feed{origin{run.kind, role}, run, e.kinds, e.tables, e.removals, e.measure, e.queue, vanished}
	}
	e.kinds.narrow = func(run *kindRun, role role, vanished func()) *narrowFeed {
		return &narrowFeed{feed: e.kinds.feed(run, role, vanished), followed: e.followed, troubles: e.troubles, states: map[string]watchset.Status{}}
	}
	n := &notices{recorder: o.Events, kinds: e.kinds, quiet: o.Timing.EventQuiet, sent: map[notice]time.Time{}}
	e.rails = &rails{
		facts: e.facts, kinds: e.kinds, queue: e.queue, troubles: e.troubles, notices: n, patience: o.Timing.Rails, holds: map[string]*railHold{},
	}
	e.sources = &sources{tables: e.tables, facts: e.facts, kinds: e.kinds, queue: e.queue, bodies: b, writer: w, troubles: e.troubles, notices: n, measure: e.measure}
	e.limits = &limits{e.tables, e.facts, e.kinds, e.queue, e.troubles, n}
	e.copies = &copies{
		settings: e.settings, timing: o.Timing, tables: e.tables, facts: e.facts, kinds: e.kinds, queue: e.queue, sources: e.sources, writer: w,
		removals: e.removals, above: newAbove(o.View, e.facts, w), rails: e.rails, limits: e.limits, repairs: r, troubles: e.troubles, notices: n,
		measure: e.measure,
	}
	e.scrub = &scrub{
		settings: e.settings, timing: o.Timing, tables: e.tables, facts: e.facts, kinds: e.kinds, queue: e.queue, sources: e.sources, writer: w,
		repairs: r, unprotected: o.Unprotected,
	}
	return e, nil
}

// SetupWithManager runs the engine with mgr.
func (e *Engine) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(newGauges(e)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	e.View.Subscribe(e.followed.noteLeft)
	if err := mgr.Add(watching{e}); err != nil {
		return err
	}
	return mgr.Add(writing{e})
}

// watching keeps the tables on every replica, so that a new leader starts warm.
type watching struct{ *Engine }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (watching) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (w watching) Start(ctx context.Context) error {
	if err := w.View.WaitForSync(ctx); err != nil {
		return nil //nolint:nilerr // the manager is stopping
	}
	w.View.Subscribe(w.setForest)
	var informers sync.WaitGroup
	informers.Go(func() { _ = w.set.Start(ctx) }) // it fails only when it is started twice
	informers.Go(func() { w.followed.run(ctx) })
	w.kinds.start(ctx, w.settings.Kinds)
	w.kinds.watcher.ListAndWatch(ctx, definitions, "", w.kinds.arrivals) // until ctx is done
	w.kinds.wait()
	informers.Wait()
	return nil
}

// writing carries out the plans, on the leader alone.
type writing struct{ *Engine }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (writing) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It returns when the writes under way have been answered.
func (w writing) Start(ctx context.Context) error {
	w.queue.Lead()
	for _, run := range w.kinds.list() {
		w.queue.Add(w.facts.keysOf(run.kind.GroupKind())...)
	}
	var workers sync.WaitGroup
	for range w.Concurrency {
		workers.Go(func() {
			for w.queue.WorkOne(func(k key) (inVain bool) { return w.work(ctx, k) }) {
			}
		})
	}
	workers.Go(func() { w.watchTroubles(ctx) })
	w.scrub.run(ctx, func() bool { return w.Ready(nil) == nil }) // until ctx is done
	w.queue.ShutDown()
	workers.Wait()
	return nil
}

// work does what one key asks for, and says whether it was in vain.
func (e *Engine) work(ctx context.Context, k key) (inVain bool) {
	if ctx.Err() != nil {
		return false // the process stops: only requests that are under way are finished
	}
	// A request that is under way when the process stops is finished, so that its answer is known.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Timing.Write)
	defer cancel()
	switch k.what {
	case aNamespace:
		e.queueSlotsIn(k.slot.Namespace)
	case aSource:
		e.sources.checkSource(ctx, k.slot)
	case aTenant:
		e.limits.review(k.slot.Namespace)
	case aSlot:
		inVain = e.copies.writeSlot(ctx, k.slot)
		e.rails.noteTried(k.slot)
	}
	return inVain
}

// queueSlotsIn queues every slot in namespace that a plan may concern, and every slot there with a trouble, even if no source wants a copy in
// that slot any longer.
func (e *Engine) queueSlotsIn(namespace string) {
	slots := e.facts.slotsIn(namespace)
	for slot := range e.troubles.in(namespace) {
		slots = append(slots, slot)
	}
	e.measure.spreadMoves(namespace, slots, e.facts.plan)
	e.queue.Add(slotKeys(slots)...)
}

// setForest takes a new snapshot of the forest, and queues every namespace that the change concerns.
func (e *Engine) setForest(c view.Change) {
	keys := e.tables.setForest(c)
	e.troubles.setForest(c)
	e.rails.setForest(c)
	e.followed.noteChange()
	if e.queue.Leads() {
		e.measure.beginMoves(c, time.Now())
	}
	e.queue.Add(keys...)
}

// AwaitsRails says whether whoever is to get rights in namespace has to wait for rails there; in a root, rails are the copies from its
// templates. The answer is true, too, for the moment until the engine has taken in the latest snapshot of the forest.
func (e *Engine) AwaitsRails(namespace string) bool {
	return e.View.Snapshot() != e.facts.forest() || e.rails.isWaiting(namespace)
}

// Unobserved returns a sentence for each kind of which the operator can see nothing anywhere, so that the state of the copies of that kind is
// unknown.
func (e *Engine) Unobserved() []string { return e.kinds.describeBlind() }

// HoldsCopies says whether namespace holds copies that the operator deletes when namespace leaves the forest, or may hold such copies without
// the operator seeing them.
func (e *Engine) HoldsCopies(namespace string) bool {
	return e.facts.holdsCopies(namespace) || e.followed.mayHold(namespace)
}

// UnobservedIn returns a sentence for each kind whose copies in namespace can't be judged now, because the operator can't see the copies
// there, or the sources in a namespace above.
func (e *Engine) UnobservedIn(namespace string) []string {
	above, _ := e.View.Snapshot().Sources(namespace)
	return append(e.Unobserved(), e.kinds.describeUnseen(namespace, above.Names)...)
}

// MayNotObserve reports whether the operator lacks a right, or room for more watches, to see the copies in namespace or the sources of a
// namespace above. Kinds that are watched in the whole cluster do not count.
func (e *Engine) MayNotObserve(namespace string) bool {
	above, _ := e.View.Snapshot().Sources(namespace)
	return e.kinds.mayNotSee(namespace, above.Names)
}

// Ready is a readiness check: the engine knows all namespaces, sources and copies that existed at its start. A kind that
// is not served, that may not be listed, or that is Degraded, is left out.
func (e *Engine) Ready(*http.Request) error {
	if !e.View.Synced() {
		return fmt.Errorf("namespaces are not synced yet")
	}
	for _, kind := range e.settings.Kinds {
		if e.kinds.stateOf(kind.GroupKind()) == kindSyncing {
			return fmt.Errorf("%s is not synced yet", kind.GroupKind())
		}
	}
	return nil
}
