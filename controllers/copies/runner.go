// Package copies runs the copying engine: it feeds internal/copyengine.State with what happens, and carries out what the State decides. All
// decisions are the State's.
//
// The way of a changed Secret: pkg/watchset shows its new metadata to a sink, which applies them to the State under the one lock (sink and
// apply, below). The State answers with a key, which waits in the queue (internal/fairqueue). A worker takes the key and applies a Started;
// the State answers with a request to read the source (requests.go). The worker applies the answer, and the State queues the slots below
// the source. For each of them a worker gets a request to write a copy, sends it (requests.go), and applies the answer.
//
// The way of a move: the view reports a change of the forest, which the Runner applies as a ForestChanged, and the State queues the
// namespaces whose copies may differ. The copies that do not belong there any more are deleted, each after a check that the namespaces
// above are what the State believes (removalchecks.go); the State holds back all writes that must wait for that.
package copies

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Options are what New needs to make a Runner.
type Options struct {
	Config      *rest.Config
	View        *view.View
	Events      record.EventRecorder
	Concurrency int
	Scrub       copying.Scrub
	// Informers follow the kinds. The manager starts them.
	Informers *watchset.Set
	// Troubled is called with the namespaces that have something new to report. It must not block, nor call the Runner; it may be nil. The
	// operator sets hierarchy.Reporter.Again.
	Troubled func(namespaces ...string)
	// Unprotected reports whether the ValidatingAdmissionPolicy that forbids all other users to change copies is missing; nil means that it is
	// in force. The operator asks guard.Guard.Missing.
	Unprotected func() bool
	// After is closed when copies may be written; nil if they always may. The operator sets access.Reconciler.Revoked.
	After <-chan struct{}
}

// Runner runs a State: it watches on every replica and writes on the leader.
type Runner struct {
	Options
	settings copyengine.Settings
	queue    *fairqueue.Queue[copyengine.Key]
	writer   *copying.Writer
	requests *Requests
	watches  *watches

	mu    sync.Mutex // guards state; nothing that blocks is called while it is held
	state *copyengine.State
}

// New returns a Runner that reads and writes with o.Config.
func New(o Options, settings copyengine.Settings) (*Runner, error) {
	w, err := copying.NewWriter(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client for copies: %w", err)
	}
	if o.Unprotected == nil {
		o.Unprotected = func() bool { return false }
	}
	if o.Troubled == nil {
		o.Troubled = func(...string) {}
	}
	r := &Runner{Options: o, settings: settings, writer: w, state: copyengine.NewState(o.View.Snapshot(), settings)}
	r.queue = fairqueue.New(r.attributesOf, clock.RealClock{})
	r.requests = NewRequests(w, o.View, settings.Rules, r.read, r.apply)
	r.watches = newWatches(o.Informers, r.apply)
	return r, nil
}

// attributesOf returns where a key waits. The queue calls it under its own lock.
func (r *Runner) attributesOf(key copyengine.Key) (of fairqueue.Attributes) {
	r.read(func(s *copyengine.State) { of = s.TurnOf(key) })
	return of
}

// read calls look with the State, under the lock.
func (r *Runner) read(look func(*copyengine.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look(r.state)
}

// apply applies an Input, and carries out the Outputs. It returns the Request among them, or nil.
func (r *Runner) apply(input copyengine.Input) copyengine.Request {
	r.mu.Lock()
	outputs := r.state.Apply(time.Now(), input)
	r.mu.Unlock()
	return r.performOutputs(outputs)
}

func (r *Runner) performOutputs(outputs []copyengine.Output) (request copyengine.Request) {
	for _, output := range outputs {
		switch one := output.(type) {
		case copyengine.Queue:
			r.queue.AddAfter(one.After, one.Keys...)
		case copyengine.Report:
			r.Troubled(one.Namespaces...)
		case copies.Event:
			copying.SendEvent(r.Events, one)
		case copies.Log:
			copying.WriteLog("copies", one)
		case copyengine.Follow:
			r.watches.followNamespaces(one.Namespaces)
		case copyengine.FollowSoon:
			r.watches.followSoon()
		case copyengine.Request:
			request = one
		default:
			recordMetrics(one)
		}
	}
	return request
}

// sink applies what one watch shows. It implements watchset.Sink.
type sink struct {
	watch copyengine.Watch
	apply func(copyengine.Input) copyengine.Request
}

// Replace implements watchset.Sink, and so do Put, Gone and State.
func (s *sink) Replace(namespace, resourceVersion string, all []client.Object) {
	objects := make([]*metav1.PartialObjectMetadata, 0, len(all))
	for _, object := range all {
		objects = append(objects, object.(*metav1.PartialObjectMetadata))
	}
	s.apply(copyengine.Listed{Watch: s.watch, Namespace: namespace, ResourceVersion: resourceVersion, Objects: objects})
}

func (s *sink) Put(object client.Object) {
	s.apply(copyengine.ObjectSeen{Watch: s.watch, Object: object.(*metav1.PartialObjectMetadata)})
}

func (s *sink) Gone(object client.Object) {
	s.apply(copyengine.ObjectGone{Watch: s.watch, Object: object.(*metav1.PartialObjectMetadata)})
}

func (s *sink) State(namespace string, now watchset.Status) {
	s.apply(copyengine.WatchChanged{Watch: s.watch, Namespace: namespace, Status: now})
}

// SetupWithManager runs the Runner with mgr.
func (r *Runner) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(newGauges(r)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	r.View.Subscribe(func(c view.Change) { r.apply(copyengine.ForestChanged(c)) })
	return errors.Join(mgr.Add(copying.EveryReplica(r.watch)), mgr.Add(manager.RunnableFunc(r.runWorkers)))
}

// watch keeps the State up to date on every replica until ctx is done, so that a new leader starts with all that is known.
func (r *Runner) watch(ctx context.Context) error {
	if err := r.View.WaitForSync(ctx); err != nil {
		return nil //nolint:nilerr // the manager is stopping
	}
	return r.watches.runWatches(ctx, r.settings.Kinds)
}

// runWorkers carries out requests, on the leader alone, until ctx is done. It returns when the requests under way have been answered.
func (r *Runner) runWorkers(ctx context.Context) error {
	if !requeue.WaitFor(ctx, r.After) {
		return nil
	}
	r.queue.Lead()
	r.apply(copyengine.Elected{})
	r.queue.Work(r.Concurrency, func(key copyengine.Key) (inVain bool) { return r.workOnKey(ctx, key) }, func() {
		var ticking sync.WaitGroup
		ticking.Go(func() { r.runTicks(ctx) })
		r.scrubCopies(ctx) // until ctx is done
		ticking.Wait()
	})
	return nil
}

// runTicks applies a Ticked every Timing.Tick until ctx is done.
func (r *Runner) runTicks(ctx context.Context) {
	for ctx.Err() == nil {
		synced := r.View.Synced()
		r.apply(copyengine.Ticked{Synced: synced, Idle: synced && r.queue.IsIdle()})
		select {
		case <-ctx.Done():
		case <-time.After(r.settings.Timing.Tick):
		}
	}
}

// Ready is a readiness check: the State knows all namespaces, sources and copies that existed at its start. A kind that is not served, that
// may not be listed, or that is degraded, does not count.
func (r *Runner) Ready(*http.Request) (err error) {
	if !r.View.Synced() {
		return fmt.Errorf("namespaces are not synced yet")
	}
	r.read(func(s *copyengine.State) { err = s.CheckSynced() })
	return err
}

// AwaitsRails reports whether new rights in namespace must wait for rails there. In a root, rails are the copies from its templates. The
// answer is true, too, for the moment until the State has taken in the latest snapshot of the forest.
func (r *Runner) AwaitsRails(namespace string) bool {
	r.mu.Lock()
	isBehind := r.state.Forest() != r.View.Snapshot()
	var outputs []copyengine.Output
	if !isBehind {
		outputs = r.state.Apply(time.Now(), copyengine.RightsAsked{Namespace: namespace})
	}
	r.mu.Unlock()
	r.performOutputs(outputs)
	return isBehind || slices.ContainsFunc(outputs, func(one copyengine.Output) bool { _, wait := one.(copyengine.RightsWait); return wait })
}

// Unobserved returns a sentence for each kind of which the operator can see nothing anywhere, so that the state of the copies of that kind
// is unknown.
func (r *Runner) Unobserved() (all []string) {
	r.read(func(s *copyengine.State) { all = s.DescribeBlind() })
	return all
}

// UnobservedIn returns a sentence for each kind whose copies in namespace cannot be judged now, because the operator cannot see the copies
// there, or the sources in a namespace above.
func (r *Runner) UnobservedIn(namespace string) (all []string) {
	r.read(func(s *copyengine.State) { all = append(s.DescribeBlind(), s.DescribeUnseen(namespace)...) })
	return all
}

// MayNotObserve reports whether the operator lacks a right, or room for more watches, to see the copies in namespace or the sources of a
// namespace above. Kinds that are watched in the whole cluster do not count.
func (r *Runner) MayNotObserve(namespace string) (lacks bool) {
	r.read(func(s *copyengine.State) { lacks = s.LacksRight(namespace) })
	return lacks
}

// HoldsCopies reports whether namespace holds copies that the operator deletes when namespace leaves the forest, or may hold such copies
// without the operator seeing them.
func (r *Runner) HoldsCopies(namespace string) (holds bool) {
	r.read(func(s *copyengine.State) { holds = s.HoldsCopies(namespace) })
	return holds
}

// Known reports whether everything in namespace, below it and above it was looked at since this replica leads. Before that, Troubles may
// lack some.
func (r *Runner) Known(namespace string) (known bool) {
	r.read(func(s *copyengine.State) { known = s.IsKnown(namespace) })
	return known
}

// Troubles returns what keeps copies in these namespaces from being what they should be, in alphabetical order.
func (r *Runner) Troubles(namespaces iter.Seq[string]) (all []copies.Trouble) {
	r.read(func(s *copyengine.State) { all = s.Troubles(namespaces) })
	return all
}

// workOnKey does what one key asks for: it carries out requests of the State, one after the other, until there is none. It reports whether
// the last write, or the check before it, has failed; ErrBehind from the check doesn't count.
func (r *Runner) workOnKey(ctx context.Context, key copyengine.Key) (inVain bool) {
	if ctx.Err() != nil {
		return false // the process stops: only requests that are under way are finished
	}
	// A request that is under way when the process stops is finished, so that its answer is known.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.settings.Timing.Write)
	defer cancel()
	request := r.apply(copyengine.Started{Key: key})
	for request != nil {
		answer := r.requests.CarryOut(ctx, request)
		switch one := answer.(type) {
		case copyengine.CopyWritten:
			inVain = one.Err != nil
		case copyengine.RemovalChecked:
			inVain = one.Err != nil && !errors.Is(one.Err, copies.ErrBehind)
		}
		request = r.apply(answer)
	}
	return inVain
}
