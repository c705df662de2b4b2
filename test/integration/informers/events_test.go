package informers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func newQueue() queue {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	DeferCleanup(q.ShutDown)
	return q
}

// enqueued empties the queue, and returns the names, sorted.
func enqueued(q queue) []string {
	var names []string
	for q.Len() > 0 {
		r, _ := q.Get()
		q.Done(r)
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// events are the events that a handler got.
type events struct {
	prefix string // of namespaces
	mu     sync.Mutex
	lines  []string
}

// add records an event, unless it is from another case, whose namespaces a cluster-wide right shows, too.
func (e *events) add(format string, object client.Object) {
	if !strings.HasPrefix(object.GetNamespace(), e.prefix) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, fmt.Sprintf(format, object.GetName()))
}

// take returns what came since it was called last, sorted.
func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := slices.Sorted(slices.Values(e.lines))
	e.lines = nil
	return lines
}

func (e *events) seen() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(slices.Values(e.lines))
}

// listen records what happens to a resource in the case's namespaces.
func (w *world) listen(resource schema.GroupVersionResource) *events {
	GinkgoHelper()
	e := &events{prefix: w.ns("")}
	w.feed(resource, e.handler())
	return e
}

func (e *events) handler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, c event.CreateEvent, _ queue) { e.add("create %s", c.Object) },
		UpdateFunc: func(_ context.Context, u event.UpdateEvent, _ queue) { e.add("update %s", u.ObjectNew) },
		DeleteFunc: func(_ context.Context, d event.DeleteEvent, _ queue) { e.add("delete %s", d.Object) },
	}
}

// feed starts a Source, and returns the queue that its handler gets.
func (w *world) feed(resource schema.GroupVersionResource, h handler.EventHandler) queue {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	q := newQueue()
	Expect(w.Source("test", resource, h).Start(ctx, q)).To(Succeed())
	return q
}

// states starts a source of States.
func (w *world) states() queue {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	q := newQueue()
	Expect(w.States("test").Start(ctx, q)).To(Succeed())
	return q
}
