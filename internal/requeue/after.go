package requeue

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// WaitFor waits until begins is closed, and reports whether that was before ctx was done. With a nil begins, it doesn't wait.
func WaitFor(ctx context.Context, begins <-chan struct{}) bool {
	if begins == nil {
		return true
	}
	select {
	case <-begins:
		return true
	case <-ctx.Done():
		return false
	}
}

// After returns a reconciler that waits until begins is closed before it does anything.
func After(begins <-chan struct{}, next reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if !WaitFor(ctx, begins) {
			return reconcile.Result{}, ctx.Err()
		}
		return next.Reconcile(ctx, request)
	})
}
