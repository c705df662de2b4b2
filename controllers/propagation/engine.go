// Package propagation keeps copies of sources in the namespaces below them.
//
// It watches metadata only (watch.go, tables.go), keeps what it sees in a propagate.World, asks the pure planner what a
// slot needs (slot.go), and does that with one guarded write (writer.go). Sources are read once per version (source.go).
package propagation

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/controllers/index"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// Kind is a kind that is propagated, and how.
type Kind struct {
	schema.GroupVersionKind // an empty version means the one that the server prefers
	Mode                    propagate.KindMode
}

// Settings are what the configuration says about propagation.
type Settings struct {
	Kinds []Kind
	Rules propagate.Rules
	// RetryMin and RetryMax bound the back-off of copies that are rejected.
	RetryMin, RetryMax time.Duration
	Scrub              Scrub
}

// Options are what the engine is made of.
type Options struct {
	Config      *rest.Config
	Mapper      meta.RESTMapper
	Index       *index.Index
	Events      record.EventRecorder
	Concurrency int
	Timing      Timing
	// Troubled is told which namespaces have something new to report: those with troubles, those above them, and those of
	// the sources. It must not block, nor ask the engine; nil tells nobody.
	Troubled func(namespaces ...string)
	// Unprotected says whether the policy that keeps everybody off the copies is missing; nil means that it is in force.
	Unprotected func() bool
}

// Timing holds the engine's time constants, so that tests can shrink them.
type Timing struct {
	// ConflictMax caps the back-off of looks at an obstacle.
	ConflictMax time.Duration
	// TransientMin and TransientMax bound the back-off of writes that fail without being refused.
	TransientMin, TransientMax time.Duration
	// KindMin and KindMax bound the back-off of looks for a kind that is not served; KindGone is where it begins for one
	// that was served before.
	KindMin, KindMax, KindGone time.Duration
	// EventQuiet is how long a source gets no second Event of one reason.
	EventQuiet time.Duration
	// Write bounds one request.
	Write time.Duration
	// LoopWindow is how long a copy that somebody changes in a loop is left as it is.
	LoopWindow time.Duration
	// ScrubTick is how often it is asked whether a scrub is due.
	ScrubTick time.Duration
	// Stuck is how long a namespace waits for removals before that is told.
	Stuck time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		ConflictMax:  45 * time.Second,
		TransientMin: 200 * time.Millisecond, TransientMax: 30 * time.Second,
		KindMin: 200 * time.Millisecond, KindMax: 5 * time.Minute, KindGone: 5 * time.Second,
		EventQuiet: 5 * time.Minute,
		Write:      30 * time.Second,
		LoopWindow: 10 * time.Minute,
		ScrubTick:  time.Second,
		Stuck:      time.Second,
	}
}

// Engine propagates. It is a manager.Runnable: it watches on every replica and writes on the leader.
type Engine struct {
	Options
	writer   *writer
	observer Observer
	queue    workqueue.TypedDelayingInterface[key]
	bodies   *bodies
	reading  singleflight.Group
	arrivals *arrivals

	mu       sync.Mutex // guards all below; never held across a request or a call of the queue
	world    *propagate.World
	settings Settings
	kinds    map[schema.GroupKind]*kindRun
	seen     map[schema.GroupKind]string // highest resourceVersion of a copy that a watch has brought
	waiting  map[string]*pause           // namespaces in which something waits for removals
	removing map[string]int              // by namespace: DELETEs that are not answered yet
	troubles troubles
	repairs  *repairs
	found    map[propagate.Slot]string // how drift was found that waits to be put right, if not by the watch
	fanouts  fanouts
	moves    moves
	events   map[told]time.Time
	leading  bool
	known    bool // everything was looked at since this replica leads

	working atomic.Int64 // keys that are worked on
}

// New returns an engine that reads and writes with o.Config.
func New(o Options, s Settings) (*Engine, error) {
	w, err := newWriter(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client for copies: %w", err)
	}
	observer, err := newMetadataObserver(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client for watches: %w", err)
	}
	e := &Engine{
		Options: o, writer: w, observer: observer, settings: s,
		bodies:   newBodies(),
		arrivals: newArrivals(),
		world:    propagate.NewWorld(o.Index.Snapshot()),
		kinds:    map[schema.GroupKind]*kindRun{},
		seen:     map[schema.GroupKind]string{},
		waiting:  map[string]*pause{},
		removing: map[string]int{},
		troubles: troubles{},
		repairs:  newRepairs(),
		found:    map[propagate.Slot]string{},
		fanouts:  newFanouts(),
		moves:    moves{},
		events:   map[told]time.Time{},
	}
	e.queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Queue: newFairQueue(e.urgency)}),
	})
	return e, nil
}

// SetupWithManager runs the engine with mgr.
func (e *Engine) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(newGauges(e)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
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
	if err := w.Index.WaitForSync(ctx); err != nil {
		return nil //nolint:nilerr // the manager is stopping
	}
	w.Index.Subscribe(w.forestChanged)
	w.startKinds(ctx)
	w.observer.Observe(ctx, definitions, "", w.arrivals) // until ctx is done
	w.stopKinds()
	return nil
}

// writing carries out the plans, on the leader alone.
type writing struct{ *Engine }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (writing) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It returns when the writes under way have been answered.
func (w writing) Start(ctx context.Context) error {
	w.mu.Lock()
	w.leading = true
	keys := w.everything()
	w.mu.Unlock()
	w.enqueue(keys...)
	var workers sync.WaitGroup
	for range w.Concurrency {
		workers.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	workers.Go(func() { w.getKnown(ctx) })
	w.scrub(ctx) // until ctx is done
	w.queue.ShutDown()
	workers.Wait()
	return nil
}

// Ready is a readiness check: the engine knows all namespaces, sources and copies that existed at its start. A kind that
// is not served, or that may not be listed, is left out.
func (e *Engine) Ready(*http.Request) error {
	if !e.Index.Synced() {
		return fmt.Errorf("namespaces are not synced yet")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, kind := range e.settings.Kinds {
		if run := e.kinds[kind.GroupKind()]; run == nil || run.state == kindSyncing {
			return fmt.Errorf("%s is not synced yet", kind.GroupKind())
		}
	}
	return nil
}

// next works on one key. It returns false when the queue has been shut down.
func (e *Engine) next(ctx context.Context) bool {
	k, shutdown := e.queue.Get()
	if shutdown {
		return false
	}
	e.working.Add(1)
	defer e.working.Add(-1)
	defer e.queue.Done(k)
	if ctx.Err() != nil {
		return true // drain: only what is under way is finished
	}
	// A request that is under way when the process stops is finished, so that its answer is known.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Timing.Write)
	defer cancel()
	switch k.what {
	case aNamespace:
		e.enqueueSlotsIn(k.slot.Namespace)
	case aSource:
		e.settle(ctx, k.slot)
	case aSlot:
		e.fill(ctx, k.slot)
	}
	return true
}

// forestChanged takes a new snapshot and looks again at every namespace that it concerns.
func (e *Engine) forestChanged(c index.Change) {
	e.mu.Lock()
	e.world.Forest = c.New
	e.moved(c)
	if e.leading {
		e.moves.begin(c, time.Now())
	}
	var keys []key
	for _, namespace := range c.Namespaces {
		keys = append(keys, namespaceKey(namespace))
		for _, slot := range e.world.Doubtful(namespace) {
			e.world.SetLoss(slot, propagate.Unverified)
			keys = append(keys, sourceOf(slot))
		}
	}
	e.mu.Unlock()
	e.enqueue(keys...)
}

// everything are the keys of all that is known. The caller holds the lock.
func (e *Engine) everything() []key {
	var keys []key
	for gk := range e.kinds {
		keys = append(keys, e.everythingOf(gk)...)
	}
	return keys
}

func (e *Engine) everythingOf(gk schema.GroupKind) []key {
	sources, copies := e.world.Kind(gk)
	keys := make([]key, 0, len(sources)+len(copies))
	for _, slot := range sources {
		keys = append(keys, sourceOf(slot))
	}
	for _, slot := range copies {
		keys = append(keys, slotKey(slot))
	}
	return keys
}

// enqueue adds keys on the leader; a standby keeps tables but no work. The caller doesn't hold the lock.
func (e *Engine) enqueue(keys ...key) {
	e.mu.Lock()
	leading := e.leading
	e.mu.Unlock()
	if !leading {
		return
	}
	for _, k := range keys {
		e.queue.Add(k)
	}
}

func (e *Engine) enqueueSlotsIn(namespace string) {
	e.mu.Lock()
	slots := e.world.SlotsIn(namespace)
	for slot := range e.troubles[namespace] { // also what is wanted there no longer
		slots = append(slots, slot)
	}
	ended := e.moves.looked(namespace, slots, e.world.Plan)
	e.mu.Unlock()
	e.enqueue(slotKeys(slots)...)
	observeMoves(ended)
}

// Reconfigure puts other settings in force: every kind whose mode changed, and all if the rules did, is watched anew.
func (e *Engine) Reconfigure(ctx context.Context, s Settings) {
	e.stopKinds()
	e.mu.Lock()
	for gk := range e.kinds {
		if !slices.ContainsFunc(s.Kinds, func(k Kind) bool { return k.GroupKind() == gk }) {
			delete(e.kinds, gk)
		}
		e.world.ForgetKind(gk)
	}
	e.settings, e.known, e.troubles = s, false, troubles{}
	e.bodies.clear()
	e.mu.Unlock()
	e.startKinds(ctx)
}
