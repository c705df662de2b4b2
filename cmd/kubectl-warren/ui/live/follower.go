package live

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

const (
	// reviewInterval is how often rights are reviewed while a page is open: the API server ends no watch when the right to
	// it is revoked.
	reviewInterval = 8 * time.Second
	// publishInterval is the least time between two messages to a page.
	publishInterval = 200 * time.Millisecond
	controllerName  = "ui"
)

// resources are the four kinds that the forest is made of, in the order of the sinks.
var resources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "namespaces"},
	v1alpha1.GroupVersion.WithResource("hierarchyconfigurations"),
	v1alpha1.GroupVersion.WithResource("subnamespaces"),
	v1alpha1.GroupVersion.WithResource("lnamespaces"),
}

// Follower follows the forest.
type Follower struct {
	set    *watchset.Set
	caches *caches
	roots  []string
	// pages counts the open event streams.
	pages atomic.Int32
	wake  chan struct{}
	// walked is what the last successful walk found, for a caller who may not list namespaces. walkError is the error of
	// the last walk. mu guards both.
	mu        sync.Mutex
	walked    graph.Facts
	walkError error
	tenants   *namedTenants
	book      *Book
}

// New makes a follower of the trees that begin at roots or, if roots is empty, of all. For a caller who may not list
// namespaces, it follows the trees of roots and homes, and reads by api the LNamespaces that the caller may not watch.
func New(config *rest.Config, scheme *runtime.Scheme, api client.Reader, roots, homes []string) (*Follower, error) {
	set, err := watchset.New(newGate(config), watchset.Options{
		Scheme: scheme, WatchRBAC: watchset.Off, WatchCRDs: watchset.Off, VerifyInterval: ptr.To(time.Duration(0)),
		Backoff: watchset.Backoff{Initial: reviewInterval / 2, Max: time.Minute}, DegradedAfter: 3 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	f := &Follower{set: set, roots: roots, wake: make(chan struct{}, 1), tenants: newNamedTenants(api, time.Now),
		book: newBook(roots, homes)}
	f.caches = newCaches(f.noteChange)
	return f, nil
}

// Book returns the book of the rows that pages show.
func (f *Follower) Book() *Book { return f.book }

// noteChange wakes runPublisher, which makes the rows anew.
func (f *Follower) noteChange() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run follows the forest until ctx is done.
func (f *Follower) Run(ctx context.Context) error {
	for i, resource := range resources {
		form := watchset.Full
		if i == 0 {
			form = watchset.Metadata
		}
		_, err := f.set.Acquire(watchset.Static("forest"),
			watchset.Request{Resource: resource, Form: form, Sink: f.caches.sinks[i]})
		if err != nil {
			return fmt.Errorf("following %s: %w", resource.Resource, err)
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go f.reviewWhileSeen(ctx)
	go f.walkWhileForbidden(ctx)
	go f.runPublisher(ctx)
	return f.set.Start(ctx)
}

// reviewWhileSeen reviews the rights while a page is open. Otherwise it makes no request.
func (f *Follower) reviewWhileSeen(ctx context.Context) {
	tick := time.NewTicker(reviewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if f.pages.Load() > 0 {
				f.set.Poke()
			}
		}
	}
}

// runPublisher makes the rows anew after changes.
func (f *Follower) runPublisher(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		if facts, trouble, err := f.findFacts(); f.caches.isSettled() && (err != nil || facts.View.Forest != nil) {
			f.book.setFacts(facts, trouble, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(publishInterval): // a burst becomes one message
		}
	}
}

// findFacts returns what the caller may see: the whole forest, or what the last walk found. Before the first walk, it has
// no forest.
func (f *Follower) findFacts() (graph.Facts, Trouble, error) {
	facts, trouble := f.caches.copyFacts()
	if f.caches.findState().State != watchset.Forbidden {
		return facts, trouble, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.walked, trouble, f.walkError
}

// walkWhileForbidden walks from the roots and homes for a caller who may not list namespaces: every second, and
// whenever something has changed in the trees that a walk found. The walk reads through informers, one for each kind
// and namespace.
func (f *Follower) walkWhileForbidden(ctx context.Context) {
	controller := f.set.For(controllerName)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	for _, resource := range resources {
		if err := controller.Source(resource, nil).Start(ctx, queue); err != nil {
			return
		}
	}
	if err := controller.States().Start(ctx, queue); err != nil {
		return
	}
	context.AfterFunc(ctx, queue.ShutDown)
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "forest"}}
	queue.Add(request)
	for {
		item, over := queue.Get()
		if over {
			return
		}
		queue.Done(item)
		switch f.caches.findState().State {
		case watchset.Forbidden:
			f.readTrees(ctx, controller.Session(request.NamespacedName))
			f.noteChange()
		case watchset.Synced:
			controller.Release(request.NamespacedName)
		}
		queue.AddAfter(request, time.Second) // for what a walk could not read yet, and changes of the right to list
	}
}

// readTrees reads the trees of the roots and homes through informers. One in which the caller may read nothing is shown
// by its name alone.
func (f *Follower) readTrees(ctx context.Context, session *watchset.Session) {
	reader := f.tenants.addTo(session.Reader(watchset.SyncTimeout(reviewInterval)))
	facts, err := graph.ReadFound(ctx, reader, f.book.findTops())
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		session.Commit()
		f.walked = facts
	}
	f.walkError = err
}

// sentenceOf returns the reason why the forest can't be shown, in one line; "" for no error.
func sentenceOf(err error) string {
	if err == nil {
		return ""
	}
	return failure.Describe(err)
}
