package apianswer

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheWait is how long a metric waits for a cache that is not synced yet.
const cacheWait = 100 * time.Millisecond

// ListCached reads into list what a cache holds, for a metric that counts the objects; the caller must not change them. It returns
// false where the cache isn't synced yet, perhaps because the operator may not list the kind. Only that metric is left out of the
// scrape then.
func ListCached(cache client.Reader, list client.ObjectList) bool {
	ctx, cancel := context.WithTimeout(context.Background(), cacheWait)
	defer cancel()
	return cache.List(ctx, list, client.UnsafeDisableDeepCopy) == nil
}
