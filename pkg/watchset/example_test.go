package watchset_test

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

// A controller of ConfigMaps, each of which names a Secret in its own namespace. The operator starts and works whatever its rights
// are; a ConfigMap whose Secret the operator may not see is reconciled again when that right changes.
func Example() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		panic(err)
	}
	set, err := watchset.New(mgr.GetConfig(), watchset.Options{Scheme: mgr.GetScheme(), Logger: mgr.GetLogger()})
	if err != nil {
		panic(err)
	}
	if err := mgr.Add(set); err != nil {
		panic(err)
	}
	const name = "references"
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	err = ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).
		WatchesRawSource(set.Source(name, secrets, nil)). // a Secret changed: enqueues the ConfigMaps that lease it
		WatchesRawSource(set.States(name)).               // a right came or went: enqueues the ConfigMaps whose leases need it
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			owner := watchset.Owner{Controller: name, NamespacedName: request.NamespacedName}
			var referrer corev1.ConfigMap
			if err := mgr.GetClient().Get(ctx, request.NamespacedName, &referrer); apierrors.IsNotFound(err) {
				set.Release(owner)
				return reconcile.Result{}, nil
			} else if err != nil {
				return reconcile.Result{}, err
			}

			session := set.Session(owner)
			var secret corev1.Secret
			err := session.Reader().Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: referrer.Data["secret"]}, &secret)
			switch {
			case err == nil: // it is there
			case apierrors.IsNotFound(err): // it is not there
			case apierrors.IsForbidden(err): // nobody knows: say so in a condition; States brings the object back
			case errors.Is(err, watchset.ErrNotSynced): // not yet; States brings the object back
			default:
				return reconcile.Result{}, err
			}
			session.Commit() // Secrets that it named before are no longer watched
			return reconcile.Result{}, nil
		}))
	if err != nil {
		panic(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}
