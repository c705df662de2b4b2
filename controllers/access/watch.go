package access

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/grants"
)

// Field indexes of the manager's cache.
const (
	indexTenant = "warren-access-tenant" // of cluster-scoped access objects: every tenant that they belong to
	// of LNamespaces: the namespaces of listed service accounts
	indexAccounts = "warren-access-accounts"
)

// SetupWithManager registers the reconciler, and the controllers of orphans, of the groups of sudoers (see groups), and
// of namesakes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.checkComplete(mgr); err != nil {
		return err
	}
	if err := indexFields(mgr); err != nil {
		return err
	}
	if err := setupOrphans(mgr, r.objects, r.Timing); err != nil {
		return err
	}
	patient := apianswer.Patiently(r)
	err := ctrl.NewControllerManagedBy(mgr).Named("access").
		For(&v1alpha1.LNamespace{}, builder.WithPredicates(specChanged(r.clock, patient.Hasten))).
		Watches(&rbacv1.ClusterRole{}, handleObjects(r.objects.recent)).
		Watches(&rbacv1.ClusterRoleBinding{}, handleObjects(r.objects.recent)).
		Watches(&rbacv1.RoleBinding{}, handleObjects(r.objects.recent), builder.WithPredicates(predicate.NewPredicateFuncs(notCopied))).
		WatchesRawSource(r.Changes).
		WatchesRawSource(sourceOrNone(r.Vetting)).
		WatchesRawSource(&r.groups.again).
		WatchesRawSource(&r.namesakes.again).
		WatchesRawSource(&r.start.again).
		WatchesRawSource(&r.requests.again).
		WatchesRawSource(&r.copied).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.Workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.Timing.ErrorMin, r.Timing.RetryMax),
		}).
		Complete(patient)
	if err := errors.Join(err, mgr.Add(manager.RunnableFunc(r.listTenants)), r.groups.loop.SetupWithManager(mgr),
		r.namesakes.loop.SetupWithManager(mgr)); err != nil {
		return fmt.Errorf("setting up the access controllers: %w", err)
	}
	return nil
}

func requestFor(tenant string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: tenant}}
}

func (r *Reconciler) checkComplete(mgr ctrl.Manager) error {
	if r.View == nil || r.Changes == nil || r.Report == nil || r.Events == nil {
		return errors.New("setting up the access controller: View, Changes, Report and Events are required")
	}
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Live == nil {
		r.Live = mgr.GetAPIReader()
	}
	if r.Timing == (Timing{}) {
		r.Timing = DefaultTiming()
	}
	if r.Workers == 0 {
		r.Workers = 4
	}
	r.namesakes = newNamesakes(r.Live, r.Events, r.Timing)
	r.groups = newGroups(r.View, r.Client, r.Live, r.Timing)
	r.groups.namesakes = r.namesakes
	readTo, err := readPositions(mgr.GetCache())
	if err != nil {
		return err
	}
	r.objects = &objectStore{client: r.Client, live: r.Live, recent: newRecent(r.Timing.Recent, readTo)}
	if r.Revoked == nil {
		r.Revoked = make(chan struct{})
	}
	r.start = newStartPhase(r.Revoked)
	r.switches = newSwitches(r)
	r.accounts = &accountRecorder{live: r.Live, view: r.View, report: r.Report}
	r.leaving, r.clock = &leavingTenants{}, &revocationClock{}
	r.patience = workqueue.NewTypedItemExponentialFailureRateLimiter[string](r.Timing.RetryMin, r.Timing.RetryMax)
	r.steps = &stepRunner{objects: r.objects, leaving: r.leaving, clock: r.clock, patience: r.patience, uidOf: r.View.UID}
	r.announcer = &announcer{events: r.Events}
	r.roles = &userRoles{live: r.Live, trust: r.Timing.RoleTrust, doubt: r.Timing.RetryMin}
	objectCount.reader.Store(&r.Client)
	return nil
}

// readPositions returns a function that returns the resourceVersion up to which the informer of a kind of access
// objects has read.
func readPositions(from cache.Cache) (func(kind string) string, error) {
	informers := map[string]toolscache.SharedInformer{}
	for _, object := range []grants.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &rbacv1.RoleBinding{}} {
		informer, err := from.GetInformer(context.Background(), object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("getting the informer of %T: %w", object, err)
		}
		if shared, ok := informer.(toolscache.SharedInformer); ok {
			informers[grants.KeyOf(object).Kind] = shared
		}
	}
	return func(kind string) string {
		if informer := informers[kind]; informer != nil {
			return informer.LastSyncResourceVersion()
		}
		return ""
	}, nil
}

func indexFields(mgr ctrl.Manager) error {
	tenants := func(object client.Object) []string { return grants.Tenants(object) }
	for _, object := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), object, indexTenant, tenants); err != nil {
			return fmt.Errorf("indexing %T by tenant: %w", object, err)
		}
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.LNamespace{}, indexAccounts, accountNamespaces); err != nil {
		return fmt.Errorf("indexing LNamespaces by the namespaces of service accounts: %w", err)
	}
	return nil
}

// specChanged drops updates of an LNamespace that leave its spec as it was. For every other update it calls edited, and
// records the time, so that revocations can be timed.
func specChanged(clock *revocationClock, edited func(reconcile.Request)) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			changed := e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
			if changed {
				clock.recordChange(e.ObjectNew.GetName())
				edited(requestFor(e.ObjectNew.GetName()))
			}
			return changed
		},
	}
}

// notCopied drops the events of propagated copies, which controllers/copies writes.
func notCopied(object client.Object) bool {
	return !grants.IsCopied(object)
}

// handleObjects requeues every tenant that an access object belongs to, or belonged to. If only the owners of a shared
// pair have changed, it requeues only the tenants that became owners or ceased to be. Otherwise a pair of n tenants
// would cost n² requests.
func handleObjects(seen *recent) handler.EventHandler {
	all := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		seen.recordSeen(object)
		return tenantsOf(object)
	})
	return handler.Funcs{
		CreateFunc: all.Create, DeleteFunc: all.Delete, GenericFunc: all.Generic,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			tenants, only := grants.OwnersChanged(e.ObjectOld, e.ObjectNew)
			if !only {
				all.Update(ctx, e, queue)
				return
			}
			seen.recordSeen(e.ObjectNew)
			for _, tenant := range tenants {
				queue.Add(requestFor(tenant))
			}
		},
	}
}

// tenantsOf returns requests for every tenant that an access object belongs to. The caller calls it for the old and the
// new object of an update.
func tenantsOf(object client.Object) []reconcile.Request {
	tenants := grants.Tenants(object)
	if namespace := object.GetNamespace(); namespace != "" {
		tenants = append(tenants, namespace) // also by namespace, as someone may have changed the labels that name the tenant
	}
	requests := make([]reconcile.Request, 0, len(tenants))
	for _, tenant := range tenants {
		requests = append(requests, requestFor(tenant))
	}
	return requests
}
