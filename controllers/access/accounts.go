package access

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// accountRecorder records in the status of an LNamespace, for each listed service account, a digest of the UID of the
// account's namespace.
type accountRecorder struct {
	live   client.Reader
	view   View
	report func(context.Context, *v1alpha1.LNamespace, func(*v1alpha1.LNamespaceStatus)) error
}

// rememberAccounts brings the service accounts in the status up to date with the lists, each with a digest of its
// namespace's UID, and returns them. It changes nothing in a tenant that is being deleted. An account gets no access
// before its namespace is recorded. Otherwise, if the operator crashed between both writes, it could later accept
// another namespace that somebody created under that name.
func (r *accountRecorder) rememberAccounts(ctx context.Context, tenant *v1alpha1.LNamespace) ([]v1alpha1.ListedServiceAccount, error) {
	before := tenant.Status.ServiceAccounts
	if !tenant.DeletionTimestamp.IsZero() {
		return before, nil
	}
	uids, err := r.uidsOfNew(ctx, tenant)
	if err != nil {
		return before, err
	}
	remember := func(remembered []v1alpha1.ListedServiceAccount) []v1alpha1.ListedServiceAccount {
		return grants.RememberAccounts(tenant, remembered, belongsTo(r.view, tenant), func(namespace string) types.UID { return uids[namespace] })
	}
	if slices.Equal(remember(before), before) {
		return before, nil
	}
	var after []v1alpha1.ListedServiceAccount
	err = r.report(ctx, tenant, func(s *v1alpha1.LNamespaceStatus) {
		if s.ObservedGeneration <= tenant.Generation { // otherwise tenant is outdated: its lists may lack an account that must stay
			s.ServiceAccounts = remember(s.ServiceAccounts)
		}
		after = s.ServiceAccounts
	})
	if err != nil {
		return before, fmt.Errorf("recording the namespaces of the service accounts of LNamespace %s: %w", tenant.Name, err)
	}
	return after, nil
}

// uidsOfNew returns, by name of the namespace, the UIDs of the namespaces of the accounts that the status doesn't
// record yet; "" for a missing namespace. It reads from the API server, because the cache may not have a namespace yet
// that a manager has just created.
func (r *accountRecorder) uidsOfNew(ctx context.Context, tenant *v1alpha1.LNamespace) (map[string]types.UID, error) {
	uids := map[string]types.UID{}
	for _, account := range grants.ServiceAccounts(tenant) {
		known := slices.ContainsFunc(tenant.Status.ServiceAccounts, func(l v1alpha1.ListedServiceAccount) bool {
			return l.Namespace == account.Namespace && l.Name == account.Name
		})
		if _, looked := uids[account.Namespace]; known || looked {
			continue
		}
		uid, err := readUID(ctx, r.live, account.Namespace)
		if err != nil {
			return nil, fmt.Errorf("the namespace of a service account: %w", err)
		}
		uids[account.Namespace] = uid
	}
	return uids, nil
}

// readUID reads the UID of a Namespace from the API server; "" if there is none.
func readUID(ctx context.Context, live client.Reader, name string) (types.UID, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := live.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	return namespace.UID, nil
}

func belongsTo(view View, tenant *v1alpha1.LNamespace) func(namespace string) bool {
	return func(namespace string) bool { return view.BelongsTo(namespace, tenant.Name) }
}

// Listing returns requests for the tenants that list service accounts of these namespaces. The manager's cache of
// LNamespaces must have synced.
func (r *Reconciler) Listing(namespaces []string) []reconcile.Request {
	var requests []reconcile.Request
	for _, namespace := range namespaces {
		tenants := &v1alpha1.LNamespaceList{}
		if err := r.Client.List(context.Background(), tenants, client.MatchingFields{indexAccounts: namespace}); err != nil {
			continue // a cache that has synced doesn't fail
		}
		for i := range tenants.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: tenants.Items[i].Name}})
		}
	}
	return requests
}

// accountNamespaces returns the values of indexAccounts for one LNamespace.
func accountNamespaces(object client.Object) []string {
	var namespaces []string
	for _, account := range grants.ServiceAccounts(object.(*v1alpha1.LNamespace)) {
		if !slices.Contains(namespaces, account.Namespace) {
			namespaces = append(namespaces, account.Namespace)
		}
	}
	return namespaces
}
