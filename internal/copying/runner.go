package copying

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Options are what a Runner needs of its surroundings.
type Options struct {
	Config      *rest.Config
	View        *view.View
	Events      record.EventRecorder
	Concurrency int
	Scrub       Scrub
	// Informers follow the objects. The manager starts them.
	Informers *watchset.Set
	// Unprotected reports whether the ValidatingAdmissionPolicy that forbids all other users to change copies is
	// missing; nil means that it is in force. The operator asks guard.Guard.Missing.
	Unprotected func() bool
	// Refused is called when the API server forbids a new copy, which may be for want of room in a budget. The operator sets
	// budget.Reconciler.TakeRefusal.
	Refused func(namespace, message string)
	// After is closed when copies may be written; nil if they always may. The operator sets access.Reconciler.Revoked.
	After <-chan struct{}
}

// State is one of the two copying engines. It takes in Inputs (I), and describes what is to be done.
type State[I any] interface {
	Apply(now time.Time, input I) []copies.Output
	FindScrubParts() []copies.ScrubPart
}

// Work is what a Runner does for one engine: R are the Requests of the engine's State, and K the keys of its queue.
type Work[I, R any, K comparable] struct {
	Name string // for the log
	// Elected, Started and ForestChanged are the Inputs of these names.
	Elected       I
	Started       func(K) I
	ForestChanged func(view.Change) I
	// PlaceKey returns where a key waits. The queue calls it under its own lock.
	PlaceKey func(K) fairqueue.Attributes
	// CarryOut carries out a Request, and returns the answer, and whether the request has failed so that other keys of
	// its tenant come first. It finishes a request that is under way when the process stops.
	CarryOut func(context.Context, R) (answer I, inVain bool)
	// Timeout bounds the requests for one key together; 0 if CarryOut bounds each of them.
	Timeout time.Duration
	// Perform carries out an Output that only this engine has.
	Perform func(copies.Output)
	// Watch applies what watches show, on every replica, until its context is done.
	Watch func(context.Context) error
	// Lead runs beside the workers, on the leader alone, until its context is done; it may be nil.
	Lead func(context.Context)
	// Ready is the readiness check.
	Ready  func(*http.Request) error
	Gauges prometheus.Collector
	// Scrubber has what this engine's scrub needs; the Runner sets the rest.
	Scrubber Scrubber
}

// Runner runs the State of an engine: it watches on every replica and writes on the leader.
type Runner[S State[I], I, R any, K comparable] struct {
	Options
	work  Work[I, R, K]
	queue *fairqueue.Queue[K]

	mu    sync.Mutex // guards state; nothing that blocks is called while it is held
	state S
}

// NewRunner returns a Runner.
func NewRunner[S State[I], I, R any, K comparable](o Options, work Work[I, R, K], state S) *Runner[S, I, R, K] {
	if o.Unprotected == nil {
		o.Unprotected = func() bool { return false }
	}
	return &Runner[S, I, R, K]{Options: o, work: work, queue: fairqueue.New(work.PlaceKey, clock.RealClock{}), state: state}
}

// Read calls look with the State, under the lock.
func (r *Runner[S, I, R, K]) Read(look func(S)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look(r.state)
}

// Apply applies an Input, and carries out the Outputs. It returns the Request among them, or nil.
func (r *Runner[S, I, R, K]) Apply(input I) (request R) {
	for _, output := range r.ApplyAll(input) {
		if one, is := output.(R); is {
			request = one
		}
	}
	return request
}

// ApplyAll applies an Input, carries out the Outputs but for a Request, and returns them all.
func (r *Runner[S, I, R, K]) ApplyAll(input I) []copies.Output {
	r.mu.Lock()
	outputs := r.state.Apply(time.Now(), input)
	r.mu.Unlock()
	for _, output := range outputs {
		switch one := output.(type) {
		case copies.Queue[K]:
			r.queue.AddAfter(one.After, one.Keys...)
		case copies.Event:
			sendEvent(r.Events, one)
		case copies.Log:
			writeLog(r.work.Name, one)
		case R: // for a worker
		default:
			r.work.Perform(one)
		}
	}
	return outputs
}

// CountWaiting returns how many keys wait in the queue.
func (r *Runner[S, I, R, K]) CountWaiting() int { return r.queue.Len() }

// IsIdle reports whether no key waits in the queue, and no worker has one.
func (r *Runner[S, I, R, K]) IsIdle() bool { return r.queue.IsIdle() }

// SetupWithManager runs the Runner with mgr.
func (r *Runner[S, I, R, K]) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(r.work.Gauges); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	r.View.Subscribe(func(c view.Change) { r.Apply(r.work.ForestChanged(c)) })
	work := manager.RunnableFunc(func(ctx context.Context) error {
		r.runWorkers(ctx)
		return nil
	})
	return errors.Join(mgr.Add(EveryReplica(r.runWatches)), mgr.Add(work))
}

// runWatches keeps the State up to date on every replica until ctx is done, so that a new leader starts with all that
// is known.
func (r *Runner[S, I, R, K]) runWatches(ctx context.Context) error {
	if err := r.View.WaitForSync(ctx); err != nil {
		return nil //nolint:nilerr // the manager is stopping
	}
	return r.work.Watch(ctx)
}

// runWorkers carries out requests, on the leader alone, until ctx is done. It returns when the requests under way have
// been answered.
func (r *Runner[S, I, R, K]) runWorkers(ctx context.Context) {
	if !requeue.WaitFor(ctx, r.After) {
		return
	}
	r.queue.Lead()
	r.Apply(r.work.Elected)
	r.queue.Work(r.Concurrency, func(key K) (inVain bool) { return r.WorkOnKey(ctx, key) }, func() {
		var beside sync.WaitGroup
		if r.work.Lead != nil {
			beside.Go(func() { r.work.Lead(ctx) })
		}
		r.scrubCopies(ctx) // until ctx is done
		beside.Wait()
	})
}

// WorkOnKey does what one key asks for: it carries out requests of the State, one after the other, until there is none.
// It reports whether the last one was in vain.
func (r *Runner[S, I, R, K]) WorkOnKey(ctx context.Context, key K) (inVain bool) {
	if ctx.Err() != nil {
		return false // the process stops: only requests that are under way are finished
	}
	// A request that is under way when the process stops is finished, so that its answer is known.
	ctx = context.WithoutCancel(ctx)
	if r.work.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.work.Timeout)
		defer cancel()
	}
	var answer I
	for request := r.Apply(r.work.Started(key)); any(request) != nil; request = r.Apply(answer) {
		answer, inVain = r.work.CarryOut(ctx, request)
	}
	return inVain
}

// scrubCopies compares all copies with what they should be, slowly, whenever a pass is due, until ctx is done.
func (r *Runner[S, I, R, K]) scrubCopies(ctx context.Context) {
	scrubber := r.work.Scrubber
	scrubber.Scrub, scrubber.Name, scrubber.Unprotected = r.Scrub, r.work.Name, r.Unprotected
	scrubber.Ready = func() bool { return r.work.Ready(nil) == nil }
	scrubber.Parts = func() (parts []copies.ScrubPart) {
		r.Read(func(s S) { parts = s.FindScrubParts() })
		return parts
	}
	scrubber.Run(ctx)
}
