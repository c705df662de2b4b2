package apianswer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

// Lost races say nothing of how busy the API server is.
func TestLostRacesDontLengthenAnAskedWait(t *testing.T) {
	var answer error = apierrors.NewConflict(secrets, "s", errors.New("changed"))
	r := apianswer.Patiently(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, answer
	}))
	for range 8 {
		_, _ = r.Reconcile(t.Context(), reconcile.Request{})
	}
	answer = apierrors.NewTooManyRequests("busy", 1)
	if result, _ := r.Reconcile(t.Context(), reconcile.Request{}); result.RequeueAfter != 2*time.Second {
		t.Errorf("the first 429 waits %s", result.RequeueAfter)
	}
}
