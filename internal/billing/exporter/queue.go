package exporter

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// change is one notification of a watch, in the order in which it came, with when it came.
type change struct {
	object any // a *metav1.PartialObjectMetadata or a *v1alpha1.LNamespace
	gone   bool
	seen   time.Time
}

// queue holds changes until the tracker takes them. It has no bound: to wait would lose what comes in between.
type queue struct {
	now    func() time.Time
	signal chan struct{}

	mu      sync.Mutex // guards changes
	changes []change
}

func newQueue(now func() time.Time) *queue {
	return &queue{now: now, signal: make(chan struct{}, 1)}
}

func (q *queue) put(object any, gone bool) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	q.mu.Lock()
	q.changes = append(q.changes, change{object, gone, q.now()})
	q.mu.Unlock()
	select {
	case q.signal <- struct{}{}:
	default: // it is signalled already
	}
}

func (q *queue) take() []change {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.changes
	q.changes = nil
	return taken
}

// follow has the watches fill the queue, and returns when all that exists is in it.
func (q *queue) follow(ctx context.Context, informers cache.Informers) error {
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(schema.FromAPIVersionAndKind(namespaceType.APIVersion, namespaceType.Kind))
	for _, object := range []client.Object{namespaces, &v1alpha1.LNamespace{}} {
		informer, err := informers.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { q.put(o, false) },
			UpdateFunc: func(_, o any) { q.put(o, false) },
			DeleteFunc: func(o any) { q.put(o, true) },
		})
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return ctx.Err()
		}
	}
	return nil
}
