package watchset

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discoveryCache is how long an answer of discovery is used again, for all parts.
const discoveryCache = 5 * time.Second

// discoveryTimeout bounds one request of discovery. Several callers may wait for one request, so the end of a caller's context
// doesn't end the request.
const discoveryTimeout = 10 * time.Second

// catalog asks discovery which resources the server serves, a group version at a time.
type catalog struct {
	clients *clients
	asking  singleflight.Group
	ended   <-chan struct{} // closed when the Set stops
	flights inflight        // requests under way; Set.Start waits for them

	mu      sync.Mutex
	answers map[schema.GroupVersion]answer
	kinds   map[schema.GroupVersionKind]schema.GroupVersionResource // resources found in earlier answers, by kind
}

type answer struct {
	asked     time.Time
	resources []metav1.APIResource // empty: the group version is not served
}

func newCatalog(c *clients, ended <-chan struct{}) *catalog {
	return &catalog{clients: c, ended: ended, answers: map[schema.GroupVersion]answer{}, kinds: map[schema.GroupVersionKind]schema.GroupVersionResource{}}
}

// findResource returns a resource as discovery describes it, nil if the resource is not served. Cached answers that are older than
// since are not used; the zero time allows all.
func (c *catalog) findResource(ctx context.Context, gvr schema.GroupVersionResource, since time.Time) (*metav1.APIResource, error) {
	resources, err := c.ask(ctx, gvr.GroupVersion(), since)
	for i := range resources {
		if resources[i].Name == gvr.Resource {
			return &resources[i], nil
		}
	}
	return nil, err
}

// resourceOfKind returns the resource of a kind, nil if discovery has no such kind. Subresources are passed over.
func (c *catalog) resourceOfKind(ctx context.Context, gvk schema.GroupVersionKind) (*metav1.APIResource, error) {
	resources, err := c.ask(ctx, gvk.GroupVersion(), time.Time{})
	for i := range resources {
		if resources[i].Kind == gvk.Kind && !strings.Contains(resources[i].Name, "/") {
			return &resources[i], nil
		}
	}
	return nil, err
}

func (c *catalog) ask(ctx context.Context, gv schema.GroupVersion, since time.Time) ([]metav1.APIResource, error) {
	if known, ok := c.known(gv, since); ok {
		return known.resources, nil
	}
	flight := c.asking.DoChan(gv.String(), func() (any, error) {
		if known, ok := c.known(gv, since); ok {
			return known.resources, nil
		}
		return c.discoverVersion(gv)
	})
	select {
	case landed := <-flight:
		return landed.Val.([]metav1.APIResource), landed.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// discoverVersion requests the resources of a group version, on behalf of all callers that wait for the answer. The answer is empty
// for a group version that is not served.
func (c *catalog) discoverVersion(gv schema.GroupVersion) ([]metav1.APIResource, error) {
	if !c.flights.start() {
		return nil, ErrStopped
	}
	defer c.flights.done()
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	go func() {
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	asked := time.Now()
	list, err := c.clients.discovery.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	now := answer{asked: asked}
	if err == nil {
		now.resources = list.APIResources
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[gv] = now
	return now.resources, nil
}

func (c *catalog) known(gv schema.GroupVersion, since time.Time) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.answers[gv]
	return known, ok && time.Since(known.asked) < discoveryCache && !known.asked.Before(since)
}

// resource returns the resource of a kind, and false unless an earlier call of remember recorded that kind.
func (c *catalog) resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.kinds[gvk]
	return known, ok
}

func (c *catalog) remember(gvk schema.GroupVersionKind, plural string) schema.GroupVersionResource {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[gvk] = gvk.GroupVersion().WithResource(plural)
	return c.kinds[gvk]
}
