package propagation

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// kindState is how far the watches of a kind are.
type kindState string

const (
	kindSyncing   kindState = "syncing"
	kindActive    kindState = "active"
	kindPending   kindState = "pending"   // the API server doesn't serve it
	kindForbidden kindState = "forbidden" // the operator may not list or watch it
)

var kindStates = []kindState{kindSyncing, kindActive, kindPending, kindForbidden}

// kindRun is a kind that is being watched.
type kindRun struct {
	kind    Kind
	mapping *meta.RESTMapping // nil while the kind is not served
	cancel  context.CancelFunc
	done    sync.WaitGroup
	feeds   []*feed
	state   kindState
	synced  bool // it has been active since it was last found
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

func (e *Engine) startKinds(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, kind := range e.settings.Kinds {
		ctx, cancel := context.WithCancel(ctx)
		run := &kindRun{kind: kind, cancel: cancel, state: kindSyncing}
		e.kinds[kind.GroupKind()] = run
		run.done.Go(func() { e.watchKind(ctx, run) })
	}
}

func (e *Engine) stopKinds() {
	e.mu.Lock()
	var runs []*kindRun
	for _, run := range e.kinds {
		runs = append(runs, run)
	}
	e.mu.Unlock()
	for _, run := range runs {
		run.cancel()
		run.done.Wait()
	}
}

// watchKind watches a kind whenever the API server serves it, until ctx is done. A CRD that comes announces itself;
// otherwise the API server is asked again with a back-off.
func (e *Engine) watchKind(ctx context.Context, run *kindRun) {
	first := wait.Backoff{Duration: e.Timing.KindMin, Cap: e.Timing.KindMax, Factor: 2, Jitter: 0.2, Steps: 32}
	backoff := first
	for ctx.Err() == nil {
		changed := e.arrivals.changed()
		mapping, err := e.mapping(run.kind)
		switch {
		case err == nil:
			served := e.watchServed(ctx, run, mapping)
			changed = e.arrivals.changed() // what has changed meanwhile is no reason to look again
			if served {
				backoff = wait.Backoff{Duration: e.Timing.KindGone, Cap: e.Timing.KindMax, Factor: 2, Jitter: 0.2, Steps: 32}
			}
		case meta.IsNoMatchError(err):
			e.setState(run, kindPending)
		default:
			ctrl.Log.WithName("propagation").Error(err, "looking for a kind", "kind", run.kind.GroupKind().String())
		}
		select {
		case <-ctx.Done():
		case <-changed:
			backoff = first
		case <-time.After(backoff.Step()):
		}
	}
}

// watchServed watches a kind until ctx is done or the API server says that it serves it no longer. synced says whether it
// did before.
func (e *Engine) watchServed(ctx context.Context, run *kindRun, mapping *meta.RESTMapping) (synced bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	roles := []role{sourcesAlone, copiesAlone}
	if run.kind.Mode == propagate.All {
		roles = []role{sourcesAndCopies}
	}
	e.mu.Lock()
	run.mapping, run.state, run.synced = mapping, kindSyncing, false
	run.feeds = nil
	for _, r := range roles {
		run.feeds = append(run.feeds, &feed{engine: e, run: run, role: r, vanished: cancel})
	}
	feeds := run.feeds
	e.mu.Unlock()
	var observers sync.WaitGroup
	for _, f := range feeds {
		observers.Go(func() { e.observer.Observe(ctx, mapping.Resource, selectors[f.role], f) })
	}
	observers.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return run.synced
}

func (e *Engine) mapping(kind Kind) (*meta.RESTMapping, error) {
	if kind.Version == "" {
		return e.Mapper.RESTMapping(kind.GroupKind())
	}
	return e.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

func (e *Engine) setState(run *kindRun, state kindState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	run.state = state
}

// judge sets the state of a kind from those of its feeds and, when that makes it complete, returns all that is to be
// looked at. The caller holds the lock.
func (e *Engine) judge(run *kindRun) []key {
	state := kindActive
	for _, f := range run.feeds {
		switch {
		case f.trouble != "":
			state = f.trouble
		case !f.synced && state == kindActive:
			state = kindSyncing
		}
	}
	was := run.state
	run.state, run.synced = state, run.synced || state == kindActive
	gk := run.kind.GroupKind()
	e.world.SetKind(gk, run.kind.Mode, state == kindActive)
	if state != kindActive || was == kindActive {
		return nil
	}
	return e.everythingOf(gk)
}

// resource is where the kind is written; ok is false while it is not served.
func (e *Engine) resource(gk schema.GroupKind) (schema.GroupVersionResource, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	run := e.kinds[gk]
	if run == nil || run.mapping == nil {
		return schema.GroupVersionResource{}, false
	}
	return run.mapping.Resource, true
}
