package access

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// groups knows who else binds the groups of sudoers. A foreign binding, one that the operator didn't write, may be older than the
// tenant's first grant of sudo. Then whoever creates an LNamespace of the right name would get what that binding grants, so it
// stops the first grant. A later foreign binding is called a gift of its author: it stops nothing, because its author must not be
// able to take anything away with it. status.sudoGrantedAt remembers the first grant.
//
// ClusterRoleBindings are watched. RoleBindings would be too many to watch, so all of them are listed from time to time, and before
// a tenant's sudoers get their first right. One such pass over all RoleBindings is called a look (groupscan.go).
type groups struct {
	view    View
	timing  Timing
	live    client.Reader
	ours    client.Reader // the manager's cache: ClusterRoleBindings with the label of access objects
	foreign cache.Cache   // ClusterRoleBindings without that label, reduced to the groups of sudoers

	recheck chan struct{}
	table   *holderTable
}

// groupState says what foreign bindings mean for a tenant's sudo.
type groupState struct {
	// inTheWay are foreign bindings that name the group, before the tenant's first grant. Sudo waits until they are deleted.
	inTheWay []holder
	// gifts are foreign bindings that name the group and grant something outside of the tree, after the first grant.
	gifts []holder
	// pending says that no look has finished since the tenant listed its first sudoer. The look requeues the tenant when it has.
	pending bool
	// forbidden is the API server's message if it refuses looks to the operator; else "".
	forbidden string
}

// holder is a binding that names the group of a tenant's sudoers, and that the operator didn't write for this LNamespace.
type holder struct {
	key grants.Key
	uid types.UID // an Event on the binding needs it
	// leftover says that the operator wrote the binding for an earlier LNamespace of the same name.
	leftover bool
}

func holderOf(binding grants.Object) holder {
	return holder{key: grants.KeyOf(binding), uid: binding.GetUID()}
}

func newGroups(view View, ours, live client.Reader, timing Timing) *groups {
	return &groups{
		view: view, ours: ours, live: live, timing: timing, recheck: make(chan struct{}, 1), table: newHolderTable(),
	}
}

// lookAtGroup returns what foreign bindings mean for the tenant's sudo. desired is the pair of its sudoers, and actual what exists.
func (g *groups) lookAtGroup(ctx context.Context, tenant *v1alpha1.LNamespace, desired grants.Pair, actual grants.Actual) (groupState, error) {
	granted := grants.WasGranted(tenant, desired, actual)
	if len(grants.Subjects(desired.Binding)) == 0 {
		if !granted {
			g.table.forgetTenant(tenant.Name)
		}
		return groupState{}, nil
	}
	group := v1alpha1.SudoersGroup(tenant.Name)
	holders, err := g.clusterWide(ctx, group)
	if err != nil {
		return groupState{}, err
	}
	return g.table.judgeTenant(tenant.Name, granted, holders, g.view), nil
}

// requestRecheck asks for another read of the RoleBindings that stop the first grants of tenants. It doesn't block.
func (g *groups) requestRecheck() {
	select {
	case g.recheck <- struct{}{}:
	default: // a recheck is due already
	}
}

// clusterWide returns the foreign ClusterRoleBindings of the group.
func (g *groups) clusterWide(ctx context.Context, group string) ([]holder, error) {
	var elsewhere []holder
	for _, reader := range []client.Reader{g.foreign, g.ours} {
		bindings := &rbacv1.ClusterRoleBindingList{}
		if err := reader.List(ctx, bindings, client.MatchingFields{indexGroup: group}); err != nil {
			return nil, fmt.Errorf("listing ClusterRoleBindings of group %s: %w", group, err)
		}
		for i := range bindings.Items {
			binding := &bindings.Items[i]
			if !grants.IsOurs(binding) {
				elsewhere = append(elsewhere, holderOf(binding))
			}
		}
	}
	return elsewhere, nil
}

// watchBindings sets up the cache of ClusterRoleBindings without the label of access objects.
func (g *groups) watchBindings(mgr ctrl.Manager) error {
	unlabelled, err := labels.NewRequirement(v1alpha1.LabelAccess, selection.DoesNotExist, nil)
	if err != nil {
		return fmt.Errorf("selecting ClusterRoleBindings that are not the operator's: %w", err)
	}
	g.foreign, err = cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&rbacv1.ClusterRoleBinding{}: {
			Label: labels.NewSelector().Add(*unlabelled), Transform: groupsOnly,
		}},
	})
	if err != nil {
		return fmt.Errorf("making a cache of ClusterRoleBindings: %w", err)
	}
	if err := g.foreign.IndexField(context.Background(), &rbacv1.ClusterRoleBinding{}, indexGroup, groupsOfSudoers); err != nil {
		return fmt.Errorf("indexing ClusterRoleBindings by group: %w", err)
	}
	return mgr.Add(ownCache{g.foreign})
}

// boundElsewhere requeues a tenant when a ClusterRoleBinding begins or ceases to name its group.
func (g *groups) boundElsewhere() source.Source {
	requests := func(_ context.Context, binding *rbacv1.ClusterRoleBinding) []reconcile.Request {
		var requests []reconcile.Request
		for _, group := range groupsOfSudoers(binding) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: strings.TrimSuffix(group, v1alpha1.SudoersSuffix)}})
		}
		return requests
	}
	return source.Kind(g.foreign, &rbacv1.ClusterRoleBinding{}, handler.TypedEnqueueRequestsFromMapFunc(requests))
}

// groupsOnly reduces a ClusterRoleBinding to what groupsOfSudoers reads, since a cluster may have thousands of them.
func groupsOnly(object any) (any, error) {
	binding, ok := object.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return object, nil
	}
	slim := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{
		Name: binding.Name, UID: binding.UID, ResourceVersion: binding.ResourceVersion,
	}}
	for _, group := range groupsOfSudoers(binding) {
		slim.Subjects = append(slim.Subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group})
	}
	return slim, nil
}

// groupsOfSudoers returns the values of indexGroup for one binding.
func groupsOfSudoers(binding client.Object) []string { return grants.GroupsOfSudoers(binding) }

// ownCache makes the manager start a cache before the controllers, as it does with its own.
type ownCache struct{ cache.Cache }

// GetCache is the method by which the manager recognises a cache.
func (c ownCache) GetCache() cache.Cache { return c.Cache }
