package distribution

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// watches follows the CRD of ResourceDistributions, these objects while the CRD exists, and the copies of every configured kind.
type watches struct {
	settings *Settings
	timing   Timing
	mapper   meta.RESTMapper
	watcher  *watcher
	objects  rest.Interface // ResourceDistributions
	runs     *runs
	kinds    *kinds
	copies   *copyTable
	queue    *queue
}

// watchDefinition waits for the CRD, and then watches everything else, until ctx is done. When the CRD is deleted, the watches of
// copies go on, so that the copies that stay are unlocked.
func (w *watches) watchDefinition(ctx context.Context) {
	f := &definitionFeed{watches: w, ctx: ctx, distributions: &distributionFeed{w.settings, w.runs, w.copies, w.queue}}
	w.watcher.listAndWatch(ctx, definitions, metav1.ListOptions{FieldSelector: "metadata.name=" + distributions.Resource + "." + v1alpha1.Domain}, f)
	f.stop()
	f.kinds.Wait()
}

// definitionFeed is the sink of the watch on the CRD.
type definitionFeed struct {
	watches       *watches
	ctx           context.Context //nolint:containedctx // that of the process, which the feed lives in
	distributions *distributionFeed
	objects       sync.WaitGroup
	cancel        context.CancelFunc // nil while the CRD is not there
	kinds         sync.WaitGroup
	started       bool // the copies are watched
}

func (f *definitionFeed) replace(all []*metav1.PartialObjectMetadata) {
	if len(all) == 0 {
		f.stop()
		return
	}
	f.start()
}

func (f *definitionFeed) put(*metav1.PartialObjectMetadata)  { f.start() }
func (f *definitionFeed) gone(*metav1.PartialObjectMetadata) { f.stop() }
func (f *definitionFeed) lost(error)                         {}

func (f *definitionFeed) start() {
	if f.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(f.ctx)
	f.cancel = cancel
	f.watches.runs.setServed(true, time.Now())
	f.objects.Go(func() { watchDistributions(ctx, f.watches.objects, f.distributions) })
	if !f.started {
		f.started = true
		f.watches.startKinds(f.ctx, &f.kinds)
	}
}

// stop ends the watch of ResourceDistributions, and removes all runs because the CRD is gone. At the end of the process it keeps the
// runs, for which writes are still under way.
func (f *definitionFeed) stop() {
	if f.cancel == nil {
		return
	}
	f.cancel()
	f.objects.Wait()
	f.cancel = nil
	if f.ctx.Err() == nil {
		f.distributions.replace(nil)
		f.watches.runs.setServed(false, time.Now())
	}
}

// startKinds watches the copies of all configured kinds, until ctx is done.
func (w *watches) startKinds(ctx context.Context, all *sync.WaitGroup) {
	for _, k := range w.kinds.list() {
		all.Go(func() { w.watchKind(ctx, k) })
		all.Go(func() { w.degradeLate(ctx, k) })
	}
}

// degradeLate sets kindDegraded if a kind's copies aren't listed within Timing.Degraded, so that readiness stops waiting for them.
func (w *watches) degradeLate(ctx context.Context, k *kind) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(w.timing.Degraded):
	}
	if w.kinds.degrade(k) {
		ctrl.Log.WithName("distribution").Info("the API server has not listed the copies of this kind: nothing of it is distributed until it does", "kind", k.GroupKind().String())
		w.queue.add(w.findDependents(k.GroupKind())...)
	}
}

// watchKind watches the copies of a kind whenever the API server serves it, until ctx is done.
func (w *watches) watchKind(ctx context.Context, k *kind) {
	backoff := wait.Backoff{Duration: w.timing.KindMin, Cap: w.timing.KindMax, Factor: 2, Jitter: 0.2, Steps: 32}
	for ctx.Err() == nil {
		mapping, err := w.mapper.RESTMapping(k.GroupKind(), k.Version)
		if err == nil {
			w.kinds.setResource(k, mapping.Resource)
			watching, vanished := context.WithCancel(ctx)
			w.watcher.listAndWatch(watching, mapping.Resource, metav1.ListOptions{LabelSelector: v1alpha1.LabelDistributedBy}, &copyFeed{w, k, vanished})
			vanished()
		} else if !meta.IsNoMatchError(err) {
			ctrl.Log.WithName("distribution").Error(err, "looking for a kind", "kind", k.GroupKind().String())
		}
		if ctx.Err() != nil {
			return // writes are still under way, for which the kind is served
		}
		w.setState(k, kindPending)
		// The mapper's cache keeps resources that aren't served any more, and misses later versions of a group that it knows.
		meta.MaybeResetRESTMapper(w.mapper)
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
}

// setState sets the state of a kind and, if that is new, queues all distributions that depend on it.
func (w *watches) setState(k *kind, state kindState) {
	if w.kinds.setState(k, state) {
		w.queue.add(w.findDependents(k.GroupKind())...)
	}
}

// findDependents returns the keys of the distributions of a kind, and of deleted ones that have left copies of that kind.
func (w *watches) findDependents(gk schema.GroupKind) []key {
	var keys []key
	for _, r := range w.runs.list() {
		if t := r.distribution().Template; t != nil && t.Kind.GroupKind() == gk {
			keys = append(keys, key{distribution: r.name})
		}
	}
	for name := range w.copies.findWriters(&gk) {
		if w.runs.find(name) == nil {
			keys = append(keys, key{distribution: name})
		}
	}
	return keys
}
