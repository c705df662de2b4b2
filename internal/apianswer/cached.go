package apianswer

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheWait is how long a metric waits for a cache that is not synced yet.
const cacheWait = 100 * time.Millisecond

// ListCached reads the objects that a cache holds into list, for a metric that counts them; the caller must not change the objects. It
// returns false if the cache isn't synced yet, perhaps because the operator may not list the kind. The scrape then lacks only that metric.
func ListCached(cache client.Reader, list client.ObjectList) bool {
	ctx, cancel := context.WithTimeout(context.Background(), cacheWait)
	defer cancel()
	return cache.List(ctx, list, client.UnsafeDisableDeepCopy) == nil
}
