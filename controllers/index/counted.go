package index

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a metric waits for a cache.
const patience = 100 * time.Millisecond

// Counted reads into list what a cache holds, for a metric that counts it: to be read, not written. It is false where the cache
// has not been filled yet, perhaps for lack of a right; the other metrics are there all the same.
func Counted(cache client.Reader, list client.ObjectList) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return cache.List(ctx, list, client.UnsafeDisableDeepCopy) == nil
}
