package apianswer

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conflictDelay is how long a reconciler waits, after a write that lost a race, for the watch to bring the version that won.
const conflictDelay = 200 * time.Millisecond

// AfterWrite returns the result of a reconciler whose write of an object returned err. A write that lost a race (409) is tried
// again later, with the version that won; an object that was deleted meanwhile (404) needs nothing more.
func AfterWrite(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
