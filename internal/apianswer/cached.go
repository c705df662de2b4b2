package apianswer

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheWait is how long a metric waits at most for a cache that is not synced yet.
const cacheWait = 100 * time.Millisecond

// ListCached fills list from a cache, for a metric that counts the objects; the caller must not change them. It returns false if the cache
// can't be read within cacheWait, perhaps because the operator may not list the kind. The scrape then lacks only that metric.
func ListCached(cache client.Reader, list client.ObjectList) bool {
	ctx, cancel := context.WithTimeout(context.Background(), cacheWait)
	defer cancel()
	return cache.List(ctx, list, client.UnsafeDisableDeepCopy) == nil
}
