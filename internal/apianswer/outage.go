package apianswer

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// OutageRetryMax is the longest time between two tries of what failed because the API server could not be asked.
const OutageRetryMax = 30 * time.Second

// RetryAfterOutage paces a controller whose errors are outages, since it reports what is refused: nothing waits longer than half a
// minute after the end of one. The workqueue's own default would let it wait for a quarter of an hour.
func RetryAfterOutage() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, OutageRetryMax)
}
