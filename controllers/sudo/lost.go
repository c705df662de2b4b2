package sudo

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// endLost ends a grant whose request is gone. That is read live: the watch of requests may be behind that of grants.
func (r *Reconciler) endLost(ctx context.Context, uid types.UID) error {
	place := types.NamespacedName{Namespace: v1alpha1.SudoNamespace, Name: string(uid)}
	for _, object := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}, &batchv1.Job{}} { // the right before its timer
		found, err := r.read(ctx, place, object)
		if err != nil {
			return err
		}
		if !found || object.GetLabels()[v1alpha1.LabelAccess] != v1alpha1.AccessRequest {
			continue
		}
		tenant := object.GetLabels()[v1alpha1.LabelTenant]
		exists, err := r.findRequest(ctx, tenant, uid)
		if err != nil {
			return err
		}
		if exists != nil {
			r.queue(*exists)
			return nil
		}
		if err := r.delete(ctx, object); err != nil {
			return fmt.Errorf("ending the right of a SudoRequest of LNamespace %s that is gone: %w", tenant, err)
		}
	}
	return nil
}

// findRequest returns the place of the request with a UID in the root of a tenant; nil if there is none.
func (r *Reconciler) findRequest(ctx context.Context, tenant string, uid types.UID) (*types.NamespacedName, error) {
	if tenant == "" {
		return nil, nil
	}
	all := &v1alpha1.SudoRequestList{}
	if err := r.client.List(ctx, all, client.InNamespace(tenant)); err != nil {
		return nil, fmt.Errorf("listing the SudoRequests of LNamespace %s: %w", tenant, err)
	}
	for i := range all.Items {
		if all.Items[i].UID == uid {
			return &types.NamespacedName{Namespace: tenant, Name: all.Items[i].Name}, nil
		}
	}
	return nil, nil
}
