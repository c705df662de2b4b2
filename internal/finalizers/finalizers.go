// Package finalizers adds a finalizer to one of our objects and removes it again, for every controller that has one.
package finalizers

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/newest"
)

// Add adds a finalizer to the object that was read, copies the API server's answer into object, and records it in known. It fails with a
// conflict (409) if the object has changed since it was read. Where the object has the finalizer already, no request is sent.
func Add(ctx context.Context, api client.Client, object client.Object, finalizer string, known *newest.Known) error {
	return patchFinalizers(ctx, api, object, finalizer, "adding", controllerutil.AddFinalizer, known)
}

// Remove removes a finalizer from the object that was read, and fails with a conflict like Add. It records in known that the object is
// deleted if no finalizer is left. The error for a deleted object (404) is returned like any other: the caller knows what it means.
func Remove(ctx context.Context, api client.Client, object client.Object, finalizer string, known *newest.Known) error {
	return patchFinalizers(ctx, api, object, finalizer, "removing", controllerutil.RemoveFinalizer, known)
}

func patchFinalizers(ctx context.Context, api client.Client, object client.Object, finalizer, verb string,
	change func(client.Object, string) bool, known *newest.Known) error {
	before := object.DeepCopyObject().(client.Object)
	if !change(object, finalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := api.Patch(ctx, object, patch, client.FieldOwner(v1alpha1.OperatorName)); err != nil {
		kind, _ := api.GroupVersionKindFor(object)
		return fmt.Errorf("%s finalizer %s of %s %s: %w", verb, finalizer, kind.Kind,
			strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/"), err)
	}
	known.Record(object)
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		known.RecordChanged(object) // the API server has deleted it, and its answer has no newer resourceVersion
	}
	return nil
}
