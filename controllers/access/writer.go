package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

const owner = client.FieldOwner(v1alpha1.OperatorName)

// objectStore reads and writes access objects, one request each, and knows its own writes before the watch brings them.
// Its only lock is the one in recent.
type objectStore struct {
	// client writes, and reads from the manager's cache; live reads from the API server.
	client client.Client
	live   client.Reader
	recent *recent
}

func (s *objectStore) createObject(ctx context.Context, desired grants.Object) (grants.Object, error) {
	object := desired.DeepCopyObject().(grants.Object)
	if err := countWrite(object, "create", s.client.Create(ctx, object, owner)); err != nil {
		return nil, fmt.Errorf("creating %s: %w", grants.KeyOf(object), err)
	}
	s.recent.recordWritten(object)
	return object, nil
}

// updateObject sends one PUT of object, which has the UID and resourceVersion that were read: they guard the write.
func (s *objectStore) updateObject(ctx context.Context, object grants.Object) (grants.Object, error) {
	if err := countWrite(object, "update", s.client.Update(ctx, object, owner)); err != nil {
		return nil, fmt.Errorf("updating %s: %w", grants.KeyOf(object), err)
	}
	s.recent.recordWritten(object)
	return object, nil
}

func (s *objectStore) deleteObject(ctx context.Context, object grants.Object, guard client.Preconditions) error {
	err := countWrite(object, "delete", s.client.Delete(ctx, object, guard))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", grants.KeyOf(object), err)
	}
	// With a finalizer the object still exists, and still grants, until the watch shows its end.
	if len(object.GetFinalizers()) == 0 {
		s.recent.recordDeleted(object)
	}
	return nil
}

func sameUID(object grants.Object) client.Preconditions {
	return client.Preconditions{UID: new(object.GetUID())}
}

func isUnchanged(object grants.Object) client.Preconditions {
	return client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}
}

// countWrite counts a write in the metric, and returns its error.
func countWrite(object grants.Object, verb string, err error) error {
	result := "ok"
	if err != nil {
		result = string(apierrors.ReasonForError(err))
		if result == string(metav1.StatusReasonUnknown) {
			result = "error"
		}
	}
	writes.WithLabelValues(grants.KeyOf(object).Kind, verb, result).Inc()
	return err
}
