package access

import (
	"context"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/grants"
)

// orphans deletes access objects that belong to no tenant any more, because another client removed their owner
// references, or the finalizer of their LNamespace. Every access object except propagated copies is checked at the
// start, when the object changes, and when its LNamespace is deleted.
type orphans struct {
	objects *objectStore
}

func setupOrphans(mgr ctrl.Manager, objects *objectStore, timing Timing) error {
	o := orphans{objects}
	itself := func() handler.TypedEventHandler[client.Object, grants.Key] {
		return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []grants.Key {
			return []grants.Key{grants.KeyOf(object)}
		})
	}
	deletions := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	err := builder.TypedControllerManagedBy[grants.Key](mgr).Named("access-orphans").
		Watches(&rbacv1.ClusterRole{}, itself()).
		Watches(&rbacv1.ClusterRoleBinding{}, itself()).
		Watches(&rbacv1.RoleBinding{}, itself(), builder.WithPredicates(predicate.NewPredicateFuncs(notCopied))).
		Watches(&v1alpha1.LNamespace{}, handler.TypedEnqueueRequestsFromMapFunc(o.objectsOf), builder.WithPredicates(deletions)).
		WithOptions(controller.TypedOptions[grants.Key]{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[grants.Key](timing.ErrorMin, timing.RetryMax),
		}).
		Complete(apianswer.Patiently(o))
	if err != nil {
		return fmt.Errorf("setting up the controller of orphaned access objects: %w", err)
	}
	return nil
}

// objectsOf returns the keys of the access objects of an LNamespace that was deleted.
func (o orphans) objectsOf(ctx context.Context, tenant client.Object) []grants.Key {
	keys := grants.For(&v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: tenant.GetName()}}, grants.Facts{}).Keys()
	owned := grants.Actual{}
	_ = o.objects.addOwnedPairs(ctx, tenant.GetName(), owned) // a cache that has synced doesn't fail
	return slices.AppendSeq(keys, maps.Keys(owned))
}

// Reconcile deletes the object if the operator wrote it and no tenant claims it.
func (o orphans) Reconcile(ctx context.Context, key grants.Key) (ctrl.Result, error) {
	object, err := readObject(ctx, o.objects.client, key)
	if err != nil || object == nil || object.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, err
	}
	expected, ok := grants.Expected(object)
	if !ok || !grants.Removable(object, expected) {
		return ctrl.Result{}, nil
	}
	// The cache nearly always shows that a tenant claims the object. Before a deletion, the API server must show, too,
	// that none does.
	for _, reader := range []client.Reader{o.objects.client, o.objects.live} {
		claimed, err := isClaimed(ctx, reader, object)
		if err != nil || claimed {
			return ctrl.Result{}, err
		}
	}
	if err := o.objects.deleteObject(ctx, object, isUnchanged(object)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(ignoreConflict(err))
	}
	ctrllog.FromContext(ctx).V(1).Info("deleted an access object without a tenant", "object", key.String())
	return ctrl.Result{}, nil
}

// isClaimed reports whether the object must be left alone: because a tenant that claims it exists, or because a mark on
// it leaves its deletion to the garbage collector. An owner that is another tenant claims nothing: a thief of the
// operator's token could plant such a pair for a tenant that is made later.
func isClaimed(ctx context.Context, reader client.Reader, object grants.Object) (bool, error) {
	if grants.IsLeftToCollector(object) {
		return true, nil
	}
	for _, tenant := range grants.Claimants(object) {
		err := reader.Get(ctx, client.ObjectKey{Name: tenant}, &v1alpha1.LNamespace{})
		if err == nil {
			return true, nil
		}
		if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("reading LNamespace %s, which %s names: %w", tenant, grants.KeyOf(object), err)
		}
	}
	return false, nil
}

// ignoreConflict drops the conflict of a guarded deletion: the event of the change that came first queues the object
// again.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
