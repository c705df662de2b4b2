package exporter

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// pageSize is how many objects a page of a list has.
const pageSize = 250

// feed watches one kind and passes the facts of each object to the tracker. It is the store of client-go's reflector,
// and keeps no objects. An informer would not do, because it passes changes to its handlers on other goroutines. The
// watermark needs to know that the changes that came before a bookmark have been recorded.
type feed struct {
	tracker *tracker
	kind    watchedKind
	// synced is closed once all objects that exist are known.
	synced     chan struct{}
	markSynced func()

	// mu guards confirmed and trouble. confirmed is when the API server last sent a change, or confirmed that it has
	// nothing newer. trouble is the error of a request that failed since then; nil if none did.
	mu        sync.Mutex
	confirmed time.Time
	trouble   error
}

// watchedKind is a kind that the exporter follows: an object and a list of it, both empty.
type watchedKind struct {
	object client.Object
	list   client.ObjectList
}

// watchedKinds are Namespaces, of which only the metadata is read, and LNamespaces.
func watchedKinds() []watchedKind {
	return []watchedKind{
		{&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}},
			&metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}},
		{&v1alpha1.LNamespace{}, &v1alpha1.LNamespaceList{}},
	}
}

func newFeed(t *tracker, kind watchedKind) *feed {
	synced := make(chan struct{})
	return &feed{tracker: t, kind: kind, synced: synced, markSynced: sync.OnceFunc(func() { close(synced) })}
}

// followKind watches the feed's kind until ctx ends. If the API server cannot stream a list, it is asked for pages of
// the list.
func (f *feed) followKind(ctx context.Context, api client.WithWatch) {
	reflector := toolscache.NewReflectorWithOptions(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := f.kind.list.DeepCopyObject().(client.ObjectList)
			// No resourceVersion is set: with the reflector's, the API server might answer with an old state.
			err := api.List(ctx, list, client.Limit(o.Limit), client.Continue(o.Continue))
			return list, f.recordTrouble(err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := api.Watch(ctx, f.kind.list.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &o})
			return w, f.recordTrouble(err)
		},
	}, f.kind.object, f, toolscache.ReflectorOptions{Name: "billing"})
	reflector.WatchListPageSize = pageSize
	reflector.RunWithContext(ctx)
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater: the reflector calls it after each event of the watch,
// including the bookmarks that the API server sends about once a minute.
func (f *feed) UpdateResourceVersion(string) { f.recordConfirmed() }

// recordConfirmed records that all changes up to now are known.
func (f *feed) recordConfirmed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.confirmed, f.trouble = f.tracker.now(), nil
}

// recordTrouble returns the error of a request, and records it unless it is nil.
func (f *feed) recordTrouble(err error) error {
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.trouble = err
	}
	return err
}

// readConfirmed returns when the feed was confirmed last, and which request failed since; nil if none did.
func (f *feed) readConfirmed() (confirmed time.Time, trouble error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.confirmed, f.trouble
}

// Transformer implements cache.TransformingStore: from a list that is streamed, the reflector collects facts instead of
// objects.
func (f *feed) Transformer() toolscache.TransformFunc {
	return func(object any) (any, error) { return factsOf(object), nil }
}

// Replace implements cache.ReflectorStore: all holds every object of the kind, or its facts.
func (f *feed) Replace(all []any, _ string) error {
	facts := make([]any, len(all))
	for i, object := range all {
		facts[i] = factsOf(object)
	}
	f.tracker.replaceAll(factsOf(f.kind.object), facts)
	f.recordConfirmed()
	f.markSynced()
	return nil
}

// Add implements cache.ReflectorStore.
func (f *feed) Add(object any) error {
	f.tracker.takeChange(factsOf(object), false)
	return nil
}

// Update implements cache.ReflectorStore.
func (f *feed) Update(object any) error { return f.Add(object) }

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(object any) error {
	f.tracker.takeChange(factsOf(object), true)
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *feed) Resync() error { return nil }
