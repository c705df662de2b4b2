// Package distribution keeps a copy of a ResourceDistribution's object in every namespace that the ResourceDistribution targets. It feeds
// internal/distribute.State with what happens, and carries out what the State decides. All decisions are the State's.
//
// The way of a changed ResourceDistribution: pkg/watchset shows it to a sink, which applies it to the State under the one lock
// (distributionSink and applyInput, below). The State answers with a key, which waits in the queue (internal/fairqueue). A worker takes
// the key and applies a Started: a review plans all targets together. It may ask for a list of obstacles, then for a write of the status,
// which must record what a restarted operator has to know. Then it queues the targets. For each of them a worker gets a request to write
// one copy, sends it (requests.go), and applies the answer.
package distribution

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Options are what a Runner is made of.
type Options struct {
	Config      *rest.Config
	View        *view.View
	Events      record.EventRecorder
	Concurrency int
	Scrub       copying.Scrub
	// Informers follow ResourceDistributions and their copies. The manager starts them.
	Informers *watchset.Set
	// Unprotected reports whether the ValidatingAdmissionPolicy that lets only the operator change locked copies is missing. The operator
	// asks guard.Guard.Missing.
	Unprotected func() bool
	// After is closed when copies may be written; nil if they always may. The operator sets access.Reconciler.Revoked.
	After <-chan struct{}
}

// Runner runs a State: it watches on every replica and writes on the leader.
type Runner struct {
	Options
	timing   distribute.Timing
	queue    *fairqueue.Queue[distribute.Key]
	writer   *copying.Writer
	requests *Requests
	watches  *watches

	mu    sync.Mutex // guards state; nothing else is called while it is held
	state *distribute.State
}

// New returns a Runner that reads and writes with o.Config.
func New(o Options, of distribute.Options) (*Runner, error) {
	writer, err := copying.NewWriter(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client for copies: %w", err)
	}
	lister, err := metadata.NewForConfig(copying.OverHTTP1(o.Config))
	if err != nil {
		return nil, fmt.Errorf("making the client that lists conflicting objects: %w", err)
	}
	r := &Runner{Options: o, timing: of.Timing, writer: writer, state: distribute.NewState(o.View.Snapshot(), of)}
	r.requests = &Requests{API: writer, Timing: of.Timing, List: listWith(lister)}
	r.queue = fairqueue.New(attributesOf, clock.RealClock{})
	r.watches = newWatches(r, of.Kinds)
	return r, nil
}

// attributesOf returns where a key waits: reviews come first, then writes, in turns by distribution. There are no turns by tenant, because
// distributions belong to the administrators of the cluster.
func attributesOf(k distribute.Key) fairqueue.Attributes {
	if k.Namespace == "" {
		return fairqueue.Attributes{}
	}
	return fairqueue.Attributes{Class: 1, Lane: k.Distribution}
}

// readState calls look with the State, under the lock.
func (r *Runner) readState(look func(*distribute.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look(r.state)
}

// applyInput applies an Input, and carries out the Outputs. A Request among them is not carried out but returned.
func (r *Runner) applyInput(input distribute.Input) (request distribute.Request) {
	r.mu.Lock()
	outputs := r.state.Apply(time.Now(), input)
	r.mu.Unlock()
	for _, output := range outputs {
		switch one := output.(type) {
		case distribute.Queue:
			r.queue.AddAfter(one.After, one.Keys...)
		case distribute.FollowObstacles:
			r.watches.followSoon()
		case distribute.RolloutEnded:
			rolloutSeconds.Observe(time.Since(one.Since).Seconds())
		case copies.Event:
			copying.SendEvent(r.Events, one)
		case copies.Log:
			copying.WriteLog("distribution", one)
		case distribute.Request:
			request = one
		}
	}
	return request
}

// distributionSink applies what the watch of ResourceDistributions shows. It implements watchset.Sink.
type distributionSink struct{ *watches }

// Replace implements watchset.Sink, and so do the next three.
func (s *distributionSink) Replace(_, _ string, all []client.Object) {
	s.runner.applyInput(distribute.DistributionsListed{All: as[*v1alpha1.ResourceDistribution](all)})
}

func (s *distributionSink) Put(object client.Object) {
	s.runner.applyInput(distribute.DistributionSeen{ResourceDistribution: object.(*v1alpha1.ResourceDistribution)})
}

func (s *distributionSink) Gone(object client.Object) {
	s.runner.applyInput(distribute.DistributionGone{ResourceDistribution: object.(*v1alpha1.ResourceDistribution)})
}

func (s *distributionSink) State(_ string, now watchset.Status) {
	if now.State == "" {
		return
	}
	if s.runner.applyInput(distribute.DefinitionChanged{Status: now}); now.State != watchset.NotServed && now.Resource.Resource != "" {
		signal(s.served)
	}
}

// copySink applies what the watch of one kind's copies shows. It implements watchset.Sink.
type copySink struct {
	runner *Runner
	kind   schema.GroupKind
}

// Replace implements watchset.Sink, and so do the next three.
func (s *copySink) Replace(_, resourceVersion string, all []client.Object) {
	s.runner.applyInput(distribute.CopiesListed{Kind: s.kind, ResourceVersion: resourceVersion,
		Objects: as[*metav1.PartialObjectMetadata](all)})
}

func (s *copySink) Put(object client.Object) {
	s.runner.applyInput(distribute.CopySeen{Kind: s.kind, Object: object.(*metav1.PartialObjectMetadata)})
}

func (s *copySink) Gone(object client.Object) {
	s.runner.applyInput(distribute.CopyGone{Kind: s.kind, Object: object.(*metav1.PartialObjectMetadata)})
}

func (s *copySink) State(_ string, now watchset.Status) {
	s.runner.applyInput(distribute.KindChanged{Kind: s.kind, Status: now})
}

// obstacleSink applies what the watch of one distribution's obstacles shows. It implements watchset.Sink.
type obstacleSink struct {
	runner *Runner
	watch  *distribute.ObstacleWatch
}

// Replace implements watchset.Sink, and so do the next three.
func (s *obstacleSink) Replace(_, _ string, all []client.Object) {
	s.runner.applyInput(distribute.ObstaclesListed{Watch: s.watch, Objects: as[*metav1.PartialObjectMetadata](all)})
}

func (s *obstacleSink) Put(object client.Object) {
	s.runner.applyInput(distribute.ObstacleSeen{Watch: s.watch, Object: object.(*metav1.PartialObjectMetadata)})
}

func (s *obstacleSink) Gone(object client.Object) {
	s.runner.applyInput(distribute.ObstacleGone{Watch: s.watch, Object: object.(*metav1.PartialObjectMetadata)})
}

func (s *obstacleSink) State(_ string, now watchset.Status) {
	s.runner.applyInput(distribute.ObstacleWatchChanged{Watch: s.watch, Status: now})
}

// as returns objects that are known to have the type T.
func as[T client.Object](all []client.Object) []T {
	list := make([]T, 0, len(all))
	for _, object := range all {
		list = append(list, object.(T))
	}
	return list
}

// SetupWithManager runs the Runner with mgr.
func (r *Runner) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(gauges{r}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	r.View.Subscribe(func(c view.Change) { r.applyInput(distribute.ForestChanged(c)) })
	return errors.Join(mgr.Add(copying.EveryReplica(r.watch)), mgr.Add(manager.RunnableFunc(r.runWorkers)))
}

// watch keeps the State up to date on every replica until ctx is done, so that a new leader starts with all that is known.
func (r *Runner) watch(ctx context.Context) error {
	if err := r.View.WaitForSync(ctx); err != nil {
		return nil //nolint:nilerr // the manager is stopping
	}
	return r.watches.runWatches(ctx)
}

// runWorkers carries out requests, on the leader alone, until ctx is done. It returns when the requests under way have been answered.
func (r *Runner) runWorkers(ctx context.Context) error {
	if !requeue.WaitFor(ctx, r.After) {
		return nil
	}
	r.queue.Lead()
	r.applyInput(distribute.Elected{})
	// false, because only the work of tenants rests after a failure
	r.queue.Work(r.Concurrency, func(key distribute.Key) (inVain bool) { r.workOnKey(ctx, key); return false }, func() {
		r.scrubCopies(ctx) // until ctx is done
	})
	return nil
}

func (r *Runner) scrubCopies(ctx context.Context) {
	scrubber := copying.Scrubber{
		Scrub: r.Scrub, Name: "distribution", Writer: r.writer, Label: v1alpha1.LabelDistributedBy,
		Ready: func() bool { return r.Ready(nil) == nil }, Unprotected: r.Unprotected, Tick: r.timing.Tick, Timeout: r.timing.Write,
		Parts: func() (parts []copies.ScrubPart) {
			r.readState(func(s *distribute.State) { parts = s.FindScrubParts() })
			return parts
		},
		Compare: r.compareCopy,
	}
	scrubber.Run(ctx)
}

// Ready is a readiness check: where the CRD is served, all ResourceDistributions and their copies have been listed. It waits for a list no
// longer than DegradedAfter.
func (r *Runner) Ready(*http.Request) (err error) {
	r.readState(func(s *distribute.State) { err = s.CheckSynced(time.Now()) })
	return err
}

// workOnKey does what one key asks for: it carries out requests of the State, one after the other, until there is none.
func (r *Runner) workOnKey(ctx context.Context, key distribute.Key) {
	if ctx.Err() != nil {
		return // the process stops: only requests that are under way are finished
	}
	// A request that is under way when the process stops is finished, so that its answer is known.
	ctx = context.WithoutCancel(ctx)
	for request := r.applyInput(distribute.Started{Key: key}); request != nil; {
		request = r.applyInput(r.requests.CarryOut(ctx, request))
	}
}
