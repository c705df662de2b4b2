package apianswer

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheWait is how long a metric waits for a cache that is being filled.
const cacheWait = 100 * time.Millisecond

// ListCached reads into list what a cache holds, for a metric that counts the objects; the caller must not change them. It
// returns false where the cache has not been filled yet, perhaps because the operator lacks the right to list the kind: that
// metric is left out then, and the others are served all the same.
func ListCached(cache client.Reader, list client.ObjectList) bool {
	ctx, cancel := context.WithTimeout(context.Background(), cacheWait)
	defer cancel()
	return cache.List(ctx, list, client.UnsafeDisableDeepCopy) == nil
}
