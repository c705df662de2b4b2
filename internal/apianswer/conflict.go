package apianswer

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conflictDelay is how long a reconciler waits for the event that announces the version which won a race.
const conflictDelay = 200 * time.Millisecond

// AfterWrite is what a reconciler returns after it wrote an object: a write that lost a race (409) is tried again with the
// version that won, and an object that was deleted meanwhile (404) needs nothing more.
func AfterWrite(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
