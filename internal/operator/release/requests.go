package release

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// endRequests ends sudo on request everywhere: without policy temporary-sudo, whoever has it could write rights that outlive its time. It
// runs before the policies go, and again when the operator, which may have granted one more request, is gone.
func (r *releaser) endRequests(ctx context.Context) error {
	ours := metav1.ListOptions{LabelSelector: v1alpha1.LabelAccess + "=" + v1alpha1.AccessRequest}
	bindings := r.metadata.Resource(roleBindings).Namespace(v1alpha1.SudoNamespace)
	all, err := bindings.List(ctx, ours)
	if err != nil {
		return fmt.Errorf("listing RoleBindings in %s: %w", v1alpha1.SudoNamespace, err)
	}
	ended := 0
	for i := range all.Items {
		err := r.deleteBinding(ctx, &all.Items[i])
		if apierrors.IsForbidden(err) { // the account of the chart's hook may not
			r.printLine("sudo on request is not ended, but ends at its time: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		ended++
	}
	if ended > 0 {
		r.printLine("ended sudo on request of %d SudoRequests", ended)
	}
	return nil
}
