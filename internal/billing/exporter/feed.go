package exporter

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing/apiserver"
)

// pageSize is how many objects a page of a list has. Only one page of whole objects is in memory at a time.
const pageSize = 250

// feed is the cache.ReflectorStore of a watch on one kind. It puts the facts of each object into the queue, and keeps no objects.
// The reflector's lists come in pages, so that no list is in memory whole.
type feed struct {
	queue  *queue
	object runtime.Object
	list   func() apiserver.List

	// pages are the facts from the pages, read so far, of the current list. The reflector reads one list at a time.
	pages []any
	// now is the API server's clock; nil where nothing follows the feed.
	now func() time.Time
	// mu guards confirmed and trouble: when the API server last said that it has nothing newer, or sent the newest change, and why it
	// hasn't since; nil where nothing went wrong since.
	mu        sync.Mutex
	confirmed time.Time
	trouble   error

	// synced is closed once the first complete list is in the queue. complete says so within the feed.
	synced   chan struct{}
	complete bool
}

// census is the UIDs of all objects of one kind in a complete list. Objects that it lacks are gone.
type census struct {
	// sample shows the kind by its Go type: *namespaceFacts or *tenantFacts.
	sample any
	there  map[types.UID]bool
}

func newFeeds(q *queue) []*feed {
	namespaces := &metav1.PartialObjectMetadata{TypeMeta: namespaceType}
	return []*feed{
		{queue: q, object: namespaces, synced: make(chan struct{}), list: func() apiserver.List {
			return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: namespaceType.APIVersion, Kind: namespaceType.Kind + "List"}}
		}},
		{queue: q, object: &v1alpha1.LNamespace{}, synced: make(chan struct{}), list: func() apiserver.List { return &v1alpha1.LNamespaceList{} }},
	}
}

// pagedLists makes a reflector list in pages. A list that is streamed (sendInitialEvents) would be in memory whole before the store
// gets it.
type pagedLists struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported tells the reflector not to stream lists.
func (pagedLists) IsWatchListSemanticsUnSupported() bool { return true }

// follow watches until ctx ends.
func (f *feed) follow(ctx context.Context, api apiserver.Reader) {
	lists := pagedLists{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			page, err := f.readPage(ctx, api, o)
			f.noteTrouble(err)
			return page, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := api.Watch(ctx, f.list(), o)
			f.noteTrouble(err)
			return w, err
		},
	}}
	reflector := toolscache.NewReflectorWithOptions(lists, f.object, f, toolscache.ReflectorOptions{Name: "billing"})
	reflector.WatchListPageSize = pageSize
	reflector.RunWithContext(ctx)
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater: the reflector calls it after each event of the watch, bookmarks
// included, which the API server sends about once a minute.
func (f *feed) UpdateResourceVersion(string) { f.confirm() }

// confirm notes that all changes up to now have been put into the queue.
func (f *feed) confirm() {
	if f.now == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.confirmed, f.trouble = f.now(), nil
}

func (f *feed) noteTrouble(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble = err
}

// sight returns when the feed was confirmed last, and what went wrong since; nil if nothing did.
func (f *feed) sight() (confirmed time.Time, trouble error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.confirmed, f.trouble
}

// readPage reads one page, keeps its facts, and returns the page without its objects, because the reflector would keep them. It
// drops the requested resourceVersion: the API server pages only lists of the newest version.
func (f *feed) readPage(ctx context.Context, api apiserver.Reader, o metav1.ListOptions) (runtime.Object, error) {
	if o.Continue == "" {
		f.pages = nil
	}
	o.ResourceVersion, o.ResourceVersionMatch = "", ""
	list := f.list()
	if err := api.List(ctx, list, o); err != nil {
		return nil, err
	}
	if err := meta.EachListItem(list, func(object runtime.Object) error {
		f.pages = append(f.pages, factsOf(object))
		return nil
	}); err != nil {
		return nil, err
	}
	page := f.list()
	page.SetResourceVersion(list.GetResourceVersion())
	page.SetContinue(list.GetContinue())
	page.SetRemainingItemCount(list.GetRemainingItemCount())
	return page, nil
}

// Replace implements cache.ReflectorStore. It ignores the reflector's objects and queues the facts that readPage has kept; objects
// that were known and aren't among these are gone.
func (f *feed) Replace([]any, string) error {
	there := map[types.UID]bool{}
	for _, facts := range f.pages {
		f.queue.put(facts, false)
		if f.complete {
			there[uidOf(facts)] = true
		}
	}
	f.pages = nil
	f.confirm()
	if f.complete {
		f.queue.put(census{sample: factsOf(f.object), there: there}, false)
		return nil
	}
	f.complete = true
	close(f.synced)
	return nil
}

func uidOf(facts any) types.UID {
	switch facts := facts.(type) {
	case *namespaceFacts:
		return types.UID(facts.UID)
	case *tenantFacts:
		return facts.uid
	}
	return ""
}

// Add implements cache.ReflectorStore.
func (f *feed) Add(object any) error {
	f.queue.put(factsOf(object.(runtime.Object)), false)
	return nil
}

// Update implements cache.ReflectorStore.
func (f *feed) Update(object any) error { return f.Add(object) }

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(object any) error {
	f.queue.put(factsOf(object.(runtime.Object)), true)
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *feed) Resync() error { return nil }
