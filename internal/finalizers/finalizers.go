// Package finalizers adds a finalizer to one of our objects and removes it again, for every controller that has one.
package finalizers

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Add adds a finalizer to the object that was read, and copies the API server's answer into object. It fails with a conflict (409) if the
// object has changed since it was read. Where the object has the finalizer already, no request is sent.
func Add(ctx context.Context, api client.Client, object client.Object, finalizer string) error {
	return patchFinalizers(ctx, api, object, finalizer, "adding", controllerutil.AddFinalizer)
}

// Remove removes a finalizer from the object that was read, and fails with a conflict like Add. The error for a deleted object (404) is
// returned like any other: the caller knows what it means.
func Remove(ctx context.Context, api client.Client, object client.Object, finalizer string) error {
	return patchFinalizers(ctx, api, object, finalizer, "removing", controllerutil.RemoveFinalizer)
}

// Gone remembers the objects whose last finalizer this process has removed. The API server has deleted them, although a cache may still
// show them. The zero value is ready for use.
type Gone struct {
	mu   sync.Mutex // guards uids
	uids map[client.ObjectKey]types.UID
}

// Remove removes a finalizer like the function Remove. It remembers the object if no finalizer is left.
func (g *Gone) Remove(ctx context.Context, api client.Client, object client.Object, finalizer string) error {
	err := Remove(ctx, api, object, finalizer)
	if err == nil && object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.uids == nil {
			g.uids = map[client.ObjectKey]types.UID{}
		}
		g.uids[client.ObjectKeyFromObject(object)] = object.GetUID()
	}
	return err
}

// Has reports whether Remove has removed the object's last finalizer.
func (g *Gone) Has(object client.Object) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	uid, ok := g.uids[client.ObjectKeyFromObject(object)]
	return ok && uid == object.GetUID()
}

// Forget forgets the object of a key. Call it when the cache no longer has the object.
func (g *Gone) Forget(key client.ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.uids, key)
}

func patchFinalizers(ctx context.Context, api client.Client, object client.Object, finalizer, verb string,
	change func(client.Object, string) bool) error {
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
	return nil
}
