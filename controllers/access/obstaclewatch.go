package access

import (
	"context"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/pause"
)

// mostObstacleWatches bounds the objects that are watched by name. For the rest, a retry with back-off finds out that they are
// gone.
const mostObstacleWatches = 100

// obstacleWatch watches the metadata of foreign objects that stand in the way of tenants, each by its name, so that a tenant is
// reconciled as soon as such an object is deleted or changed, and not only after a back-off.
type obstacleWatch struct {
	client metadata.Interface
	pause  time.Duration // between two watches of one object
	// recheck reads again the RoleBindings that stop first grants of sudo.
	recheck func()

	mu      sync.Mutex // guards all below; recheck and enqueue are not called while it is held
	ctx     context.Context
	enqueue func(tenant string)
	wanted  map[string][]grants.Key           // by tenant: the objects in its way
	running map[grants.Key]context.CancelFunc // one watch for each object
}

// source ties the watches to the life of the controller: before it starts, follow does nothing.
func (o *obstacleWatch) source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ctx, o.enqueue = ctx, asking(queue)
		return nil
	})
}

// follow watches the objects of keys for tenant, and ends the watches that no tenant needs any more.
func (o *obstacleWatch) follow(tenant string, keys []grants.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx == nil || len(keys) == 0 && len(o.wanted[tenant]) == 0 {
		return
	}
	if o.wanted == nil {
		o.wanted, o.running = map[string][]grants.Key{}, map[grants.Key]context.CancelFunc{}
	}
	if o.wanted[tenant] = keys; len(keys) == 0 {
		delete(o.wanted, tenant)
	}
	needed := map[grants.Key]bool{}
	for _, keys := range o.wanted {
		for _, key := range keys {
			needed[key] = true
		}
	}
	for key, stop := range o.running {
		if !needed[key] {
			stop()
			delete(o.running, key)
		}
	}
	for _, key := range keys {
		if o.running[key] == nil && len(o.running) < mostObstacleWatches {
			ctx, stop := context.WithCancel(o.ctx)
			o.running[key] = stop
			go o.watchUntilDone(ctx, key)
		}
	}
}

// watchUntilDone watches one object until ctx is done. The begin of each watch counts as a change, because nobody knows what
// happened before it.
func (o *obstacleWatch) watchUntilDone(ctx context.Context, key grants.Key) {
	resource := rbacv1.SchemeGroupVersion.WithResource(key.Resource())
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String()
	failing := o.backoff()
	for ctx.Err() == nil {
		rest := failing.Step()
		w, err := o.client.Resource(resource).Namespace(key.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: selector})
		if err == nil {
			failing, rest = o.backoff(), o.pause
			o.tell(key)
			for event := range w.ResultChan() {
				if event.Type == watch.Deleted || event.Type == watch.Modified {
					o.tell(key)
					_ = pause.For(ctx, o.pause/5) // limits the pace where somebody changes the object all the time
				}
			}
			w.Stop()
		}
		_ = pause.For(ctx, rest)
	}
}

func (o *obstacleWatch) backoff() *wait.Backoff {
	return &wait.Backoff{Duration: o.pause, Cap: 30 * o.pause, Factor: 2, Jitter: 0.2, Steps: 32}
}

// tell requeues every tenant in whose way the object stands.
func (o *obstacleWatch) tell(key grants.Key) {
	o.recheck()
	o.mu.Lock()
	var tenants []string
	for tenant, keys := range o.wanted {
		if slices.Contains(keys, key) {
			tenants = append(tenants, tenant)
		}
	}
	enqueue := o.enqueue
	o.mu.Unlock()
	for _, tenant := range tenants {
		enqueue(tenant)
	}
}
