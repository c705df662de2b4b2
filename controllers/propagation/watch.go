package propagation

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/warren-tenancy/warren/internal/copying"
)

// Watcher watches the cluster for the engine, which knows nothing else of how that is done.
type Watcher interface {
	// ListAndWatch lists and then watches the metadata of the objects of resource that match selector, in all namespaces, until ctx is done. A
	// list or a watch that fails is reported to sink.Lost, and tried again with a back-off.
	ListAndWatch(ctx context.Context, resource schema.GroupVersionResource, selector string, sink Sink)
}

// Sink takes the events of one ListAndWatch. Calls come one at a time.
type Sink interface {
	// Replace says that exactly these objects exist.
	Replace(all []*metav1.PartialObjectMetadata)
	// Put says that an object exists or has changed, Gone that an object was deleted or no longer matches the selector.
	Put(*metav1.PartialObjectMetadata)
	Gone(*metav1.PartialObjectMetadata)
	// Lost says that a list or a watch failed. Where err is forbidden, or says that the resource is not served, the absence of an object
	// means nothing until the next Replace or Put. Other errors may pass; an expired resourceVersion only leads to a new list.
	Lost(err error)
}

// metadataWatcher watches with reflectors on metadata alone, cluster-wide.
type metadataWatcher struct{ client metadata.Interface }

func newMetadataWatcher(cfg *rest.Config) (*metadataWatcher, error) {
	m, err := metadata.NewForConfig(copying.OverHTTP1(cfg))
	return &metadataWatcher{m}, err
}

// ListAndWatch implements Watcher.
func (w *metadataWatcher) ListAndWatch(ctx context.Context, resource schema.GroupVersionResource, selector string, sink Sink) {
	getter := w.client.Resource(resource)
	kept := &store{sink: sink}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			list, err := getter.List(ctx, options)
			if err != nil {
				sink.Lost(err)
			}
			kept.listed = err == nil
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			w, err := getter.Watch(ctx, options)
			if err != nil {
				sink.Lost(err)
				return nil, err
			}
			kept.noteWatch()
			return w, nil
		},
	}
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, w.client), &metav1.PartialObjectMetadata{}, kept,
		cache.ReflectorOptions{Name: resource.String() + " " + selector})
	r.RunWithContext(ctx)
}

// store is a cache.ReflectorStore that keeps nothing but a list whose watch is not open yet. Where the operator may list but not watch, each
// new list of the reflector would otherwise count as a change, and everything would be planned anew. The reflector makes one call after the
// other.
type store struct {
	sink   Sink
	listed bool                            // the next Replace brings a list, and not the beginning of a watch
	waits  []*metav1.PartialObjectMetadata // the list whose watch is not open yet; nil if there is none
}

func (s *store) Add(obj any) error    { s.sink.Put(obj.(*metav1.PartialObjectMetadata)); return nil }
func (s *store) Update(obj any) error { s.sink.Put(obj.(*metav1.PartialObjectMetadata)); return nil }
func (s *store) Delete(obj any) error { s.sink.Gone(obj.(*metav1.PartialObjectMetadata)); return nil }
func (s *store) Resync() error        { return nil }

func (s *store) Replace(objs []any, _ string) error {
	all := make([]*metav1.PartialObjectMetadata, 0, len(objs))
	for _, obj := range objs {
		all = append(all, obj.(*metav1.PartialObjectMetadata))
	}
	if s.listed {
		s.listed, s.waits = false, all
		return nil
	}
	s.sink.Replace(all)
	return nil
}

// noteWatch says that a watch is open: the list before this watch, if there is one, counts from now on.
func (s *store) noteWatch() {
	if s.waits != nil {
		s.sink.Replace(s.waits)
	}
	s.listed, s.waits = false, nil
}
