package apianswer

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// OutageRetryMax is the longest time between two tries of a request that failed because the API server could not be reached.
const OutageRetryMax = 30 * time.Second

// RetryAfterOutage returns the rate limiter of a controller that returns an error only for outages, because it reports refusals. Within
// half a minute after the end of an outage, everything is tried again. With the workqueue's default limiter, that could take up to 17
// minutes.
func RetryAfterOutage() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, OutageRetryMax)
}
