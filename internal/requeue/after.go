package requeue

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// After returns a reconciler that waits until begins is closed before it does anything. A nil begins never makes it wait.
func After(begins <-chan struct{}, next reconcile.Reconciler) reconcile.Reconciler {
	if begins == nil {
		return next
	}
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		select {
		case <-begins:
			return next.Reconcile(ctx, request)
		case <-ctx.Done():
			return reconcile.Result{}, ctx.Err()
		}
	})
}
