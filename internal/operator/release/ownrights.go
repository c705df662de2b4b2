package release

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

var roleBindings = rbacv1.SchemeGroupVersion.WithResource("rolebindings")

// deleteOwnRights deletes the RoleBindings by which the operator of component hardened binds its own role. Nobody else would delete them,
// and they would grant the rights to any later service account of the operator's name.
func (r *releaser) deleteOwnRights(ctx context.Context) error {
	deleted := 0
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	ours := metav1.ListOptions{LabelSelector: v1alpha1.LabelAccess + "=" + v1alpha1.AccessOperator}
	err := r.eachObject(ctx, roleBindings, ours, func(binding *metav1.PartialObjectMetadata) {
		if binding.Name == v1alpha1.OperatorBinding {
			deleted++
			group.Go(func() error { return r.deleteBinding(inGroup, binding) })
		}
	})
	if failed := group.Wait(); failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("listing RoleBindings: %w", err)
	}
	if deleted > 0 {
		r.printLine("deleted RoleBinding %s in %d namespaces", v1alpha1.OperatorBinding, deleted)
	}
	return nil
}

// policyDelay is how long the API servers may still enforce a policy that is deleted.
const policyDelay = 15 * time.Second

func (r *releaser) deleteBinding(ctx context.Context, binding *metav1.PartialObjectMetadata) error {
	var refused error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, policyDelay, true, func(ctx context.Context) (bool, error) {
		onlyThis := *metav1.NewPreconditionDeleteOptions(string(binding.UID))
		err := r.metadata.Resource(roleBindings).Namespace(binding.Namespace).Delete(ctx, binding.Name, onlyThis)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is gone, or another one has taken its place
			return true, nil
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
			refused = err
			return false, nil
		}
		return true, err
	})
	if wait.Interrupted(err) && refused != nil {
		err = refused
	}
	if err != nil {
		return fmt.Errorf("deleting RoleBinding %s/%s: %w", binding.Namespace, binding.Name, err)
	}
	return nil
}
