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

// discoveryTimeout bounds one request of discovery. Several callers may wait for one request, so the end of a caller's
// context doesn't end the request.
const discoveryTimeout = 10 * time.Second

// catalog asks discovery which resources the server serves, a group or a group version at a time.
type catalog struct {
	clients *clients
	asking  singleflight.Group
	ended   <-chan struct{} // closed when the Set stops
	flights inflight        // requests under way; Set.Start waits for them

	mu      sync.Mutex
	answers map[schema.GroupVersion]answer
	kinds   map[schema.GroupVersionKind]schema.GroupVersionResource // resources found in earlier answers, by kind
}

// answer is the server's answer about a group version or, where the version is empty, about a group.
type answer struct {
	asked     time.Time
	resources []metav1.APIResource // of a group version; empty if it is not served
	versions  []string             // of a group, the preferred one first; empty if it is not served
}

func newCatalog(c *clients, ended <-chan struct{}) *catalog {
	return &catalog{clients: c, ended: ended, answers: map[schema.GroupVersion]answer{},
		kinds: map[schema.GroupVersionKind]schema.GroupVersionResource{}}
}

// findResource returns a resource as discovery describes it, nil if the resource is not served. Cached answers that are
// older than since are not used; the zero time allows all.
func (c *catalog) findResource(ctx context.Context, gvr schema.GroupVersionResource, since time.Time) (*metav1.APIResource, error) {
	said, err := c.askCachedOrLive(ctx, gvr.GroupVersion(), since)
	for _, found := range said.resources {
		if found.Name == gvr.Resource {
			return &found, nil
		}
	}
	return nil, err
}

// findKind returns a kind as discovery describes it, with group and version; nil if the kind is not served. An empty
// version means the one that the server prefers, of those that have the kind. Cached answers that are older than since
// are not used.
func (c *catalog) findKind(ctx context.Context, gvk schema.GroupVersionKind, since time.Time) (*metav1.APIResource, error) {
	versions := []string{gvk.Version}
	if gvk.Version == "" {
		said, err := c.askCachedOrLive(ctx, schema.GroupVersion{Group: gvk.Group}, since)
		if err != nil {
			return nil, err
		}
		versions = said.versions
	}
	for _, version := range versions {
		said, err := c.askCachedOrLive(ctx, schema.GroupVersion{Group: gvk.Group, Version: version}, since)
		if err != nil {
			return nil, err
		}
		for _, found := range said.resources {
			if found.Kind == gvk.Kind && !strings.Contains(found.Name, "/") { // no subresource
				found.Group, found.Version = gvk.Group, version
				return &found, nil
			}
		}
	}
	return nil, nil
}

func (c *catalog) askCachedOrLive(ctx context.Context, gv schema.GroupVersion, since time.Time) (answer, error) {
	if known, ok := c.cachedAnswer(gv, since); ok {
		return known, nil
	}
	flight := c.asking.DoChan(gv.String(), func() (any, error) {
		if known, ok := c.cachedAnswer(gv, since); ok {
			return known, nil
		}
		return c.requestDiscovery(gv)
	})
	select {
	case landed := <-flight:
		return landed.Val.(answer), landed.Err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// requestDiscovery requests the resources of a group version, or the versions of a group, on behalf of all callers that
// wait for the answer. The answer is empty for what is not served.
func (c *catalog) requestDiscovery(gv schema.GroupVersion) (answer, error) {
	if !c.flights.startRequest() {
		return answer{}, ErrStopped
	}
	defer c.flights.recordRequestDone()
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	go func() {
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	now, err := answer{asked: time.Now()}, error(nil)
	if gv.Version == "" {
		now.versions, err = c.clients.listGroupVersions(ctx, gv.Group)
	} else {
		now.resources, err = c.clients.listServedResources(ctx, gv)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return answer{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[gv] = now
	return now, nil
}

func (c *catalog) cachedAnswer(gv schema.GroupVersion, since time.Time) (answer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.answers[gv]
	return known, ok && time.Since(known.asked) < discoveryCache && !known.asked.Before(since)
}

// rememberedResource returns the resource of a kind, and false unless an earlier call of rememberPlural recorded that
// kind.
func (c *catalog) rememberedResource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.kinds[gvk]
	return known, ok
}

func (c *catalog) rememberPlural(gvk schema.GroupVersionKind, plural string) schema.GroupVersionResource {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[gvk] = gvk.GroupVersion().WithResource(plural)
	return c.kinds[gvk]
}
