package distribution

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

var (
	definitions   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	distributions = v1alpha1.GroupVersion.WithResource("resourcedistributions")
)

// newObjects returns a client that reads ResourceDistributions.
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

// sink takes the objects, of type T, that a watch brings. Its methods are called one at a time.
type sink[T any] interface {
	replace(all []T)
	put(T)
	gone(T)
	// lost says that the operator may not list or watch the objects, or that their resource is not served.
	lost(error)
}

// store is a cache.ReflectorStore that passes all to a sink, and keeps nothing.
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

// watcher lists and watches metadata.
type watcher struct{ client metadata.Interface }

// listAndWatch lists and watches the metadata of the objects of resource that choose selects, until ctx is done.
func (w *watcher) listAndWatch(ctx context.Context, resource schema.GroupVersionResource, choose metav1.ListOptions, to sink[*metav1.PartialObjectMetadata]) {
	getter := w.client.Resource(resource)
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
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, w.client), &metav1.PartialObjectMetadata{},
		store[*metav1.PartialObjectMetadata]{to}, cache.ReflectorOptions{Name: resource.String()}).RunWithContext(ctx)
}

// watchDistributions lists and watches ResourceDistributions, until ctx is done.
func watchDistributions(ctx context.Context, client rest.Interface, to sink[*v1alpha1.ResourceDistribution]) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.ResourceDistributionList{}
			err := client.Get().Resource(distributions.Resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return client.Get().Resource(distributions.Resource).VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
		},
	}
	cache.NewReflectorWithOptions(lw, &v1alpha1.ResourceDistribution{}, store[*v1alpha1.ResourceDistribution]{to},
		cache.ReflectorOptions{Name: distributions.String()}).RunWithContext(ctx)
}
