package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/access"
)

const owner = client.FieldOwner(v1alpha1.OperatorName)

func (r *Reconciler) create(ctx context.Context, desired access.Object) (access.Object, error) {
	object := desired.DeepCopyObject().(access.Object)
	if err := count(object, "create", r.Client.Create(ctx, object, owner)); err != nil {
		return nil, fmt.Errorf("creating %s: %w", access.KeyOf(object), err)
	}
	r.recent.wrote(object)
	return object, nil
}

// update is one PUT of an object as it was read, so its UID and resourceVersion guard it.
func (r *Reconciler) update(ctx context.Context, object access.Object) (access.Object, error) {
	if err := count(object, "update", r.Client.Update(ctx, object, owner)); err != nil {
		return nil, fmt.Errorf("updating %s: %w", access.KeyOf(object), err)
	}
	r.recent.wrote(object)
	return object, nil
}

func (r *Reconciler) delete(ctx context.Context, object access.Object, guard client.Preconditions) error {
	err := count(object, "delete", r.Client.Delete(ctx, object, guard))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", access.KeyOf(object), err)
	}
	if len(object.GetFinalizers()) == 0 {
		r.recent.deleted(object)
	}
	return nil
}

func sameUID(object access.Object) client.Preconditions {
	return client.Preconditions{UID: ptr.To(object.GetUID())}
}

func unchanged(object access.Object) client.Preconditions {
	return client.Preconditions{UID: ptr.To(object.GetUID()), ResourceVersion: ptr.To(object.GetResourceVersion())}
}

// count notes a write and passes its error on.
func count(object access.Object, verb string, err error) error {
	result := "ok"
	if err != nil {
		result = string(apierrors.ReasonForError(err))
		if result == string(metav1.StatusReasonUnknown) {
			result = "error"
		}
	}
	writes.WithLabelValues(access.KeyOf(object).Kind, verb, result).Inc()
	return err
}
