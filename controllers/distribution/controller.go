// Package distribution keeps a copy of a ResourceDistribution's object in every namespace that the ResourceDistribution targets.
//
// A distribution is a ResourceDistribution; its targets are the namespaces that it selects. A slot is the place of one object:
// kind, namespace and name. A copy is the object that the operator keeps in a target's slot. An obstacle is somebody else's object
// in such a slot. A run is what is known of one distribution, as long as it is the
// same object. A review plans all targets of one distribution together.
//
// When a ResourceDistribution changes, pkg/watchset shows it to a sink (watches.go), whose feed (feeds.go) updates its run (runs.go, run.go)
// and queues its key (queue.go). A worker takes the key, and reviews (reviews.go) judge all its targets together: progress
// (progress.go, judge.go) plans with the copies in copyTable (copytable.go), and lookout (obstacles.go) lists obstacles where there
// may be some. The status (statuses.go) stores what a restarted operator must know, and the keys of the targets to be written are
// queued. A worker takes each of these keys; targets (targets.go) plan it once more, and copier (copier.go) sends one write with a
// precondition. The outcome (outcomes.go) is noted as a trouble (troubles.go) or a deed (deeds.go), and reported in Events
// (events.go).
//
// Each lock is taken in one file only. The lock of a run is taken before others; the locks of runs, kinds, copyTable, troubles and
// deeds are the innermost: no other lock is taken while one of them is held. Nothing is queued or sent while any lock is held.
package distribution

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/view"
)

// Controller keeps the copies of all distributions: it watches on every replica and writes on the leader. It connects the types
// that do so, and has no state of its own.
type Controller struct {
	Options
	facts   *facts
	queue   *queue
	watches *watches
	reviews *reviews
	targets *targets
	scrub   *scrub
}

// facts are the state that the plans of all runs share.
type facts struct {
	settings *Settings
	view     *view.View
	runs     *runs
	kinds    *kinds
	copies   *copyTable
}

// New returns a controller that reads and writes with o.Config.
func New(o Options, s Settings) (*Controller, error) {
	writer, err := copying.NewWriter(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client for copies: %w", err)
	}
	client, err := metadata.NewForConfig(copying.OverHTTP1(o.Config))
	if err != nil {
		return nil, fmt.Errorf("making the client for lists: %w", err)
	}
	settings := &s
	f := &facts{settings: settings, view: o.View, runs: newRuns(), kinds: newKinds(s.Kinds), copies: newCopyTable(nameIn(o.View))}
	q := newQueue(f.runs, o.Timing.Pace)
	told, repairs := &events{o.Events}, copies.NewRepairs()
	l := &lookout{settings: settings, view: o.View, set: o.Informers, client: client, queue: q, limit: o.Timing.List}
	return &Controller{
		Options: o, facts: f, queue: q,
		watches: &watches{settings: settings, set: o.Informers, runs: f.runs, kinds: f.kinds, copies: f.copies, queue: q},
		reviews: &reviews{facts: f, timing: o.Timing, queue: q, lookout: l, statuses: &statuses{o.Timing, q, writer, told}},
		targets: &targets{
			facts: f, timing: o.Timing, queue: q, repairs: repairs, copier: &copier{f.runs, f.copies, q, writer, l},
			outcomes: &outcomes{settings, o.Timing, q, repairs, told},
		},
		scrub: &scrub{facts: f, timing: o.Timing, queue: q, unprotected: o.Unprotected},
	}, nil
}

// nameIn returns a function that returns the forest's own string for a namespace's name, so that equal names share memory; the
// given string if the forest lacks it.
func nameIn(v *view.View) func(namespace string) string {
	return func(namespace string) string {
		if n := v.Snapshot().Namespace(namespace); n != nil {
			return n.Name
		}
		return namespace
	}
}

// SetupWithManager runs the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(gauges{c.facts.runs, c.targets.repairs, c.Timing.LoopWindow}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	if err := mgr.Add(watching{c}); err != nil {
		return err
	}
	return mgr.Add(writing{c})
}

// watching keeps the tables on every replica, so that a new leader starts warm.
type watching struct{ *Controller }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (watching) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (w watching) Start(ctx context.Context) error {
	if err := w.View.WaitForSync(ctx); err != nil {
		return nil //nolint:nilerr // the manager is stopping
	}
	w.View.Subscribe(w.queueAffected)
	return w.watches.run(ctx)
}

// writing carries out the plans, on the leader alone.
type writing struct{ *Controller }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (writing) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It returns when the writes under way have been answered.
func (w writing) Start(ctx context.Context) error {
	w.queue.Lead()
	w.queue.add(findAll(w.facts.runs, w.facts.copies)...)
	var workers sync.WaitGroup
	for range w.Concurrency {
		workers.Go(func() {
			for w.queue.WorkOne(func(k key) (inVain bool) { w.work(ctx, k); return false }) { // only tenants' work rests
			}
		})
	}
	w.scrub.run(ctx, func() bool { return w.Ready(nil) == nil }) // until ctx is done
	w.queue.ShutDown()
	workers.Wait()
	return nil
}

// work handles one key: a review of a distribution, or the write of one target.
func (c *Controller) work(ctx context.Context, k key) {
	if ctx.Err() != nil {
		return // the process stops: only requests under way are finished
	}
	// A request that is under way when the process stops is finished, so that its answer is known.
	ctx = context.WithoutCancel(ctx)
	if k.namespace == "" {
		c.reviews.review(ctx, k.distribution)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timing.Write)
	defer cancel()
	c.targets.writeTarget(ctx, k)
}

// mostPlanned is of how many namespaces a change is planned under the view's lock, which it holds up; for more, every distribution is
// reviewed by a worker.
const mostPlanned = 100

// queueAffected queues the targets that a change of the forest concerns.
func (c *Controller) queueAffected(change view.Change) {
	var keys []key
	for _, r := range c.facts.runs.list() {
		if len(change.Namespaces) > mostPlanned {
			keys = append(keys, key{distribution: r.name})
			continue
		}
		keys = append(keys, r.findAffected(c.facts, change)...)
	}
	c.queue.add(keys...)
}

// Ready is a readiness check: where the CRD is served, all ResourceDistributions and their copies have been listed. It stops
// waiting for a list after DegradedAfter.
func (c *Controller) Ready(*http.Request) error {
	served, awaited := c.facts.runs.isServed(time.Now(), c.facts.settings.DegradedAfter)
	if awaited {
		return fmt.Errorf("the ResourceDistributions are not synced yet")
	}
	if gk, syncing := c.facts.kinds.findSyncing(); served && syncing {
		return fmt.Errorf("copies of %s are not synced yet", gk)
	}
	return nil
}
