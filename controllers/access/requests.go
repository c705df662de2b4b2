package access

import (
	"context"
	"sync/atomic"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/requeue"
)

// requests is whether component requests is installed, and so whether the RoleBindings of sudo on request are written.
type requests struct {
	served atomic.Bool
	again  requeue.Source[reconcile.Request]
}

// BeginRequests is called once the API server serves SudoRequests. It requeues the tenants that use them.
func (r *Reconciler) BeginRequests(ctx context.Context) {
	r.requests.served.Store(true)
	tenants := &v1alpha1.LNamespaceList{}
	if err := r.Client.List(ctx, tenants); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the tenants that use sudo on request")
		return
	}
	for i := range tenants.Items {
		if tenants.Items[i].Spec.SudoRequests != nil {
			r.requests.again.Add(requestFor(tenants.Items[i].Name))
		}
	}
}
