// Package distribution keeps the copies of ResourceDistributions.
//
// It watches the metadata of copies (watch.go, tables.go), reviews all targets of a distribution together (review.go), and
// brings each to what the pure planner says with one guarded write (write.go). The CRD may come and go (served.go).
package distribution

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/view"
)

// Settings are what the configuration says.
type Settings struct {
	distribute.Settings
	// Covered says whether mode All makes every object of a kind a source of propagation.
	Covered func(schema.GroupKind) bool
	// RetryMin and RetryMax bound the back-off of copies that are refused.
	RetryMin, RetryMax time.Duration
	Scrub              copying.Scrub
}

// Options are what the controller is made of.
type Options struct {
	Config      *rest.Config
	Mapper      meta.RESTMapper
	Index       *view.View
	Events      record.EventRecorder
	Concurrency int
	// Unprotected says whether the policy that keeps everybody off locked copies is missing.
	Unprotected func() bool
	Timing      Timing
}

// Timing holds the controller's time constants, so that tests can shrink them.
type Timing struct {
	// Pace is the least time between two writes of a status while work goes on, Last before the one at its end.
	Pace, Last time.Duration
	// TransientMin and TransientMax bound the back-off of writes that fail without being refused.
	TransientMin, TransientMax time.Duration
	// KindMin and KindMax bound the back-off of looks for a kind that is not served.
	KindMin, KindMax time.Duration
	// Degraded is how long copies, or ResourceDistributions, may be without a complete list before readiness waits no longer.
	Degraded time.Duration
	// Write bounds one request, and List the one that looks for conflicts.
	Write, List time.Duration
	// LoopWindow is how long a copy that somebody changes in a loop is left as it is.
	LoopWindow time.Duration
	// ScrubTick is how often it is asked whether a scrub is due.
	ScrubTick time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		Pace: 2 * time.Second, Last: 300 * time.Millisecond,
		TransientMin: 200 * time.Millisecond, TransientMax: 30 * time.Second,
		KindMin: time.Second, KindMax: 5 * time.Minute, Degraded: 30 * time.Second,
		Write: 30 * time.Second, List: 60 * time.Second, LoopWindow: 10 * time.Minute, ScrubTick: time.Second,
	}
}

// Controller distributes. It watches on every replica and writes on the leader.
type Controller struct {
	Options
	writer   *copying.Writer
	metadata metadata.Interface
	objects  rest.Interface // ResourceDistributions
	reader   *distribute.Reader
	queue    *copying.Queue[key, string] // in turns by distribution
	repairs  *copying.Repairs

	mu       sync.Mutex // guards all below; never held across a request or a call of the queue
	settings Settings
	restart  context.CancelFunc // ends the watches, so that they begin with other settings
	kinds    map[schema.GroupKind]*kind
	runs     map[string]*run
	copies   *distribute.Copies
	named    map[distribute.Family]map[string]bool // distributions that want this kind and name
	synced   bool                                  // all ResourceDistributions are known
	served   bool                                  // the CRD is there
	servedAt time.Time                             // since when, or since when it is watched anew
}

// New returns a controller that reads and writes with o.Config.
func New(o Options, s Settings) (*Controller, error) {
	c := &Controller{
		Options: o, settings: s, reader: distribute.NewReader(), restart: func() {},
		queue: copying.NewQueue(turnOf), repairs: copying.NewRepairs(),
		kinds: map[schema.GroupKind]*kind{}, runs: map[string]*run{},
		named: map[distribute.Family]map[string]bool{},
	}
	c.copies = distribute.NewCopies(c.nameOf)
	var err error
	if c.writer, err = copying.NewWriter(o.Config); err != nil {
		return nil, fmt.Errorf("making the client for copies: %w", err)
	}
	if c.metadata, err = metadata.NewForConfig(copying.OverHTTP1(o.Config)); err != nil {
		return nil, fmt.Errorf("making the client for watches: %w", err)
	}
	if c.objects, err = newObjects(o.Config); err != nil {
		return nil, fmt.Errorf("making the client for ResourceDistributions: %w", err)
	}
	return c, nil
}

// nameOf is the string that the forest has for a namespace.
func (c *Controller) nameOf(namespace string) string {
	if n := c.Index.Snapshot().Namespace(namespace); n != nil {
		return n.Name
	}
	return namespace
}

// SetupWithManager runs the controller with mgr.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(gauges{c}); err != nil {
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
	if err := w.Index.WaitForSync(ctx); err != nil {
		return nil //nolint:nilerr // the manager is stopping
	}
	w.Index.Subscribe(w.forestChanged)
	for ctx.Err() == nil {
		session, cancel := context.WithCancel(ctx)
		w.mu.Lock()
		w.restart = cancel
		w.mu.Unlock()
		w.watchDefinition(session) // until Reconfigure, or the end
		cancel()
	}
	return nil
}

// writing carries out the plans, on the leader alone.
type writing struct{ *Controller }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (writing) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It returns when the writes under way have been answered.
func (w writing) Start(ctx context.Context) error {
	w.queue.Lead()
	w.mu.Lock()
	keys := w.everything()
	w.mu.Unlock()
	w.enqueue(keys...)
	var workers sync.WaitGroup
	for range w.Concurrency {
		workers.Go(func() {
			for w.queue.WorkOne(func(k key) { w.work(ctx, k) }) {
			}
		})
	}
	w.scrub(ctx) // until ctx is done
	w.queue.ShutDown()
	workers.Wait()
	return nil
}

// work looks at one key.
func (c *Controller) work(ctx context.Context, k key) {
	if ctx.Err() != nil {
		return // drain: only what is under way is finished
	}
	// A request that is under way when the process stops is finished, so that its answer is known.
	ctx = context.WithoutCancel(ctx)
	if k.namespace == "" {
		c.review(ctx, k.distribution)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timing.Write)
	defer cancel()
	c.writeTarget(ctx, k)
}

// Ready is a readiness check: where the CRD is served, all ResourceDistributions and their copies are known. What isn't listed
// within Timing.Degraded holds it up no longer.
func (c *Controller) Ready(*http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.served {
		return nil
	}
	if !c.synced && time.Since(c.servedAt) < c.Timing.Degraded {
		return fmt.Errorf("the ResourceDistributions are not synced yet")
	}
	for gk, kind := range c.kinds {
		if kind.state == kindSyncing {
			return fmt.Errorf("copies of %s are not synced yet", gk)
		}
	}
	return nil
}

// Reconfigure puts other settings in force: everything is watched anew.
func (c *Controller) Reconfigure(s Settings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings, c.synced = s, false
	c.restart()
}

// enqueue adds keys, and notes which targets are to be written. The caller doesn't hold the lock.
func (c *Controller) enqueue(keys ...key) {
	if !c.queue.Leads() {
		return
	}
	c.mu.Lock()
	for _, k := range keys {
		if r := c.runs[k.distribution]; r != nil && k.namespace != "" {
			r.open[k.namespace] = true
		}
	}
	c.mu.Unlock()
	c.queue.Add(keys...)
}

// everything are the reviews of all that is known. The caller holds the lock.
func (c *Controller) everything() []key {
	names := map[string]bool{}
	for name := range c.runs {
		names[name] = true
	}
	for _, one := range c.copies.All() {
		names[one.By] = true
	}
	keys := make([]key, 0, len(names))
	for name := range names {
		keys = append(keys, key{distribution: name})
	}
	return keys
}

// forestChanged looks at what a change concerns: namespaces that are targets now, or were before.
func (c *Controller) forestChanged(change view.Change) {
	c.mu.Lock()
	var keys []key
	for name, r := range c.runs {
		if r.Problem != "" {
			continue
		}
		mentioned := map[string]bool{}
		for _, one := range r.Targets.Named() {
			mentioned[one] = true
		}
		for _, namespace := range change.Namespaces {
			old, now := change.Old.Namespace(namespace), change.New.Namespace(namespace)
			was, is := r.Targets.Choose(change.Old, namespace, c.settings.Protected), r.Targets.Choose(change.New, namespace, c.settings.Protected)
			same := change.Old != change.New && was == is && (old == nil) == (now == nil) && (old == nil || old.UID == now.UID)
			if same && c.planFor(r, change.New, namespace).Verb == distribute.Nothing {
				continue
			}
			keys = append(keys, key{name, namespace})
			if mentioned[namespace] {
				keys = append(keys, key{distribution: name})
			}
		}
	}
	c.mu.Unlock()
	c.enqueue(keys...)
}
