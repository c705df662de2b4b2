package copying

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/warren-tenancy/warren/internal/propagate"
)

// Backoff returns how long to wait after so many tries: lowest at first and twice as long each time, up to highest, give or take a fifth.
func Backoff(lowest, highest time.Duration, tries int) time.Duration {
	d := lowest << min(tries-1, 20)
	if d > highest || d <= 0 {
		d = highest
	}
	return d*4/5 + rand.N(d*2/5+1)
}

// TransientBackoff is Backoff after a request that failed without being refused; it is longer if the API server asks for more time.
func TransientBackoff(lowest, highest time.Duration, tries int, err error) time.Duration {
	delay := Backoff(lowest, highest, tries)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		delay = max(delay, time.Duration(seconds)*time.Second)
	}
	return delay
}

// IsNamespaceGone says whether a write failed because the namespace of slot is terminating or gone. Such a write is neither reported nor
// tried again.
func IsNamespaceGone(slot propagate.Slot, err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // straight from the client
	return ok && apierrors.IsNotFound(err) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces" && status.Status().Details.Name == slot.Namespace
}
