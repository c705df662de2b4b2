package distribution

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

var (
	definitions   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	distributions = v1alpha1.GroupVersion.WithResource("resourcedistributions")
)

// newObjects is a client that reads ResourceDistributions.
func newObjects(cfg *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion, cfg.APIPath = &v1alpha1.GroupVersion, "/apis"
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(cfg)
}

// sink takes what a watch brings. Calls come one at a time. T is what is watched.
type sink[T any] interface {
	replace(all []T)
	put(T)
	gone(T)
	// lost says that what is watched may not be read, or is not served.
	lost(error)
}

// store is a cache.ReflectorStore that keeps nothing.
type store[T any] struct{ sink sink[T] }

func (s store[T]) Add(obj any) error    { s.sink.put(obj.(T)); return nil }
func (s store[T]) Update(obj any) error { s.sink.put(obj.(T)); return nil }
func (s store[T]) Delete(obj any) error { s.sink.gone(obj.(T)); return nil }
func (s store[T]) Resync() error        { return nil }
func (s store[T]) Replace(objs []any, _ string) error {
	all := make([]T, 0, len(objs))
	for _, obj := range objs {
		all = append(all, obj.(T))
	}
	s.sink.replace(all)
	return nil
}

func tellLost[T any](to sink[T], err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) {
		to.lost(err)
	}
}

// observe lists and watches the metadata of the objects of resource that select chooses, until ctx is done.
func (c *Controller) observe(ctx context.Context, resource schema.GroupVersionResource, choose metav1.ListOptions, to sink[*metav1.PartialObjectMetadata]) {
	getter := c.metadata.Resource(resource)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector, options.FieldSelector = choose.LabelSelector, choose.FieldSelector
			list, err := getter.List(ctx, options)
			tellLost(to, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector, options.FieldSelector = choose.LabelSelector, choose.FieldSelector
			w, err := getter.Watch(ctx, options)
			tellLost(to, err)
			return w, err
		},
	}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, c.metadata), &metav1.PartialObjectMetadata{},
		store[*metav1.PartialObjectMetadata]{to}, cache.ReflectorOptions{Name: resource.String()}).RunWithContext(ctx)
}

// observeDistributions lists and watches ResourceDistributions, until ctx is done.
func (c *Controller) observeDistributions(ctx context.Context) {
	to := distributionFeed{c}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.ResourceDistributionList{}
			err := c.objects.Get().Resource(distributions.Resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return c.objects.Get().Resource(distributions.Resource).VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
		},
	}
	cache.NewReflectorWithOptions(lw, &v1alpha1.ResourceDistribution{}, store[*v1alpha1.ResourceDistribution]{to},
		cache.ReflectorOptions{Name: distributions.String()}).RunWithContext(ctx)
}

// watchDefinition waits for the CRD, and watches everything else while it is there, until ctx is done. The copies are
// watched on when it goes: what stays behind is unlocked.
func (c *Controller) watchDefinition(ctx context.Context) {
	f := &definitionFeed{controller: c, ctx: ctx}
	c.observe(ctx, definitions, metav1.ListOptions{FieldSelector: "metadata.name=" + distributions.Resource + "." + v1alpha1.Domain}, f)
	f.stop()
	f.kinds.Wait()
}

// definitionFeed takes the watch of the CRD.
type definitionFeed struct {
	controller *Controller
	ctx        context.Context //nolint:containedctx // that of the session, which the feed lives in
	objects    sync.WaitGroup
	cancel     context.CancelFunc // nil while the CRD is not there
	kinds      sync.WaitGroup
	started    bool // the copies are watched
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
	c := f.controller
	ctx, cancel := context.WithCancel(f.ctx)
	f.cancel = cancel
	c.mu.Lock()
	c.served, c.servedAt = true, time.Now()
	c.mu.Unlock()
	f.objects.Go(func() { c.observeDistributions(ctx) })
	if !f.started {
		f.started = true
		c.startKinds(f.ctx, &f.kinds)
	}
}

// stop forgets all ResourceDistributions where the CRD is gone. At the end of a session they are merely read again.
func (f *definitionFeed) stop() {
	if f.cancel == nil {
		return
	}
	f.cancel()
	f.objects.Wait()
	f.cancel = nil
	if f.ctx.Err() == nil {
		distributionFeed{f.controller}.replace(nil)
		f.controller.mu.Lock()
		f.controller.served = false
		f.controller.mu.Unlock()
	}
}

// kindState is how far the watch of a kind's copies is.
type kindState string

const (
	kindSyncing   kindState = "syncing"
	kindActive    kindState = "active"
	kindPending   kindState = "pending"   // the API server doesn't serve it
	kindForbidden kindState = "forbidden" // the operator may not list or watch it
	kindDegraded  kindState = "degraded"  // its copies could not be listed for Timing.Degraded, for another reason
)

// kind is a kind whose copies are watched.
type kind struct {
	schema.GroupVersionKind
	resource schema.GroupVersionResource
	state    kindState
	seen     string // highest resourceVersion that the watch has brought
}

// startKinds watches the copies of all configured kinds, until ctx is done.
func (c *Controller) startKinds(ctx context.Context, all *sync.WaitGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds = map[schema.GroupKind]*kind{}
	for _, gvk := range c.settings.Kinds {
		k := &kind{GroupVersionKind: gvk, state: kindSyncing}
		c.kinds[gvk.GroupKind()] = k
		all.Go(func() { c.watchKind(ctx, k) })
		all.Go(func() { c.degradeLate(ctx, k) })
	}
}

// degradeLate makes a kind Degraded if its copies aren't listed within Timing.Degraded, so that it holds up readiness no longer.
func (c *Controller) degradeLate(ctx context.Context, k *kind) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(c.Timing.Degraded):
	}
	c.mu.Lock()
	var keys []key
	if k.state == kindSyncing {
		k.state, keys = kindDegraded, c.dependents(k)
		ctrl.Log.WithName("distribution").Info("the API server has not listed the copies of this kind: nothing of it is distributed until it does", "kind", k.GroupKind().String())
	}
	c.mu.Unlock()
	c.enqueue(keys...)
}

func (c *Controller) watchKind(ctx context.Context, k *kind) {
	backoff := wait.Backoff{Duration: c.Timing.KindMin, Cap: c.Timing.KindMax, Factor: 2, Jitter: 0.2, Steps: 32}
	for ctx.Err() == nil {
		mapping, err := c.Mapper.RESTMapping(k.GroupKind(), k.Version)
		if err == nil {
			c.mu.Lock()
			k.resource = mapping.Resource
			c.mu.Unlock()
			watching, vanished := context.WithCancel(ctx)
			c.observe(watching, mapping.Resource, metav1.ListOptions{LabelSelector: v1alpha1.LabelDistributedBy}, &copyFeed{c, k, vanished})
			vanished()
		} else if !meta.IsNoMatchError(err) {
			ctrl.Log.WithName("distribution").Error(err, "looking for a kind", "kind", k.GroupKind().String())
		}
		if ctx.Err() != nil {
			return // the session ends, which says nothing of the kind; at the end of the process, writes are still being made
		}
		c.setState(k, kindPending)
		// The mapper keeps what is served no more, and of a group that it knows no version that came later.
		meta.MaybeResetRESTMapper(c.Mapper)
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
}

// setState notes how far the watch of a kind is, and has all be looked at that depends on it.
func (c *Controller) setState(k *kind, state kindState) {
	c.mu.Lock()
	was := k.state
	k.state = state
	var keys []key
	if was != state {
		keys = c.dependents(k)
	}
	c.mu.Unlock()
	c.enqueue(keys...)
}

// dependents are the distributions of a kind, and those that are gone and have left copies of it. The caller holds the lock.
func (c *Controller) dependents(k *kind) []key {
	var keys []key
	for name, r := range c.runs {
		if r.Template != nil && r.Template.Kind.GroupKind() == k.GroupKind() {
			keys = append(keys, key{distribution: name})
		}
	}
	for slot, one := range c.copies.All() {
		if slot.Kind == k.GroupKind() && c.runs[one.By] == nil {
			keys = append(keys, key{distribution: one.By})
		}
	}
	return keys
}
