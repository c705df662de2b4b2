package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/paging"
)

// rights plans the RBAC objects of tenants: it gathers the existing ones, and plans with the operator's own planner.
type rights struct {
	api               client.Client
	f                 *forest.Snapshot
	c                 *config.OperatorConfiguration
	operatorNamespace string
	// ending are the names of LNamespaces whose rights are taken back, because they are being deleted and nothing holds them.
	ending map[string]bool
	// before are the existing access objects (the RBAC objects of tenants); there are these objects after the writes planned so far.
	before, there grants.Actual
	// pairs are, by tenant, the self pairs that it owns before any write. A self pair is the ClusterRole and ClusterRoleBinding by
	// which a user may impersonate that same user.
	pairs map[string][]grants.Key
	// elsewhere are, by group of sudoers, the bindings of others that name it.
	elsewhere map[string][]stranger
	roleless  bool
	writes    []Write
	notes     []string
}

// stranger is a binding that names a group of sudoers and is not the operator's, or was written for an earlier LNamespace of the name.
type stranger struct {
	key      grants.Key
	leftover bool
}

// planRights plans the access objects of all tenants. If the caller may not read some kind, it adds a note and plans nothing.
func planRights(ctx context.Context, o Options, settled *settlement, tenants []*v1alpha1.LNamespace) (*rights, error) {
	r := &rights{
		api: o.API, f: settled.f, ending: settled.ending, c: o.Config, operatorNamespace: o.OperatorNamespace,
		there: grants.Actual{}, pairs: map[string][]grants.Key{}, elsewhere: map[string][]stranger{},
	}
	err := r.read(ctx, tenants)
	if apierrors.IsForbidden(err) {
		return &rights{notes: []string{"the RBAC objects of tenants: you may not list ClusterRoles, ClusterRoleBindings and RoleBindings in all namespaces"}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the RBAC objects of tenants: %w", err)
	}
	tenants = slices.SortedFunc(slices.Values(tenants), func(a, b *v1alpha1.LNamespace) int { return strings.Compare(a.Name, b.Name) })
	r.before = maps.Clone(r.there)
	mode := r.mode(ctx, o)
	for _, tenant := range tenants {
		r.planTenant(tenant, mode)
	}
	if mode.Switching() { // the rules hold both forms first, and one when they are in place everywhere
		for _, tenant := range tenants {
			r.planTenant(tenant, mode.Finish())
		}
	}
	r.planOrphans(tenants)
	return r, nil
}

// read reads the access objects that tenants own, and others' bindings that name a group of their sudoers.
func (r *rights) read(ctx context.Context, tenants []*v1alpha1.LNamespace) error {
	uids := map[string]types.UID{}
	for _, tenant := range tenants {
		uids[tenant.Name] = tenant.UID
	}
	err := paging.Each(ctx, r.api, &rbacv1.ClusterRoleList{}, pageSize, func(object client.Object) error {
		r.takeObject(object.(*rbacv1.ClusterRole))
		return nil
	}, client.HasLabels{v1alpha1.LabelAccess})
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}} {
		if err != nil {
			return err
		}
		err = paging.Each(ctx, r.api, list, pageSize, func(object client.Object) error {
			binding := object.(grants.Object)
			r.takeObject(binding)
			r.takeStranger(binding, uids)
			return nil
		})
	}
	if err != nil {
		return err
	}
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	err = r.api.Get(ctx, client.ObjectKey{Name: r.c.Access.UserClusterRole}, role)
	if r.roleless = apierrors.IsNotFound(err); r.roleless && len(tenants) > 0 {
		r.notes = append(r.notes, fmt.Sprintf("the rights of users: ClusterRole %s of access.userClusterRole doesn't exist", r.c.Access.UserClusterRole))
	}
	return client.IgnoreNotFound(err)
}

func (r *rights) takeObject(object grants.Object) {
	if object.GetLabels()[v1alpha1.LabelAccess] == "" || grants.IsCopied(object) {
		return
	}
	key := grants.KeyOf(object)
	r.there[key] = object
	if _, self := grants.SelfUser(key.Name); self {
		for _, tenant := range grants.Tenants(object) {
			r.pairs[tenant] = append(r.pairs[tenant], key)
		}
	}
}

func (r *rights) takeStranger(object grants.Object, uids map[string]types.UID) {
	for _, group := range grants.ForeignGroups(object, func(tenant string) types.UID { return uids[tenant] }) {
		r.elsewhere[group.Name] = append(r.elsewhere[group.Name], stranger{grants.KeyOf(object), group.Leftover})
	}
}

// mode is the form in which sudo is granted, by the configuration, the rules that exist, and what the API server can do.
func (r *rights) mode(ctx context.Context, o Options) grants.Mode {
	var found grants.Forms
	for _, object := range r.there {
		if role, ok := object.(*rbacv1.ClusterRole); ok && grants.GrantsSudo(role) {
			found = found.Or(grants.FormsIn(role))
		}
	}
	answer := grants.Unknown
	if r.c.Sudo.Mode != v1alpha1.SudoLegacy {
		if o.Probe != nil {
			answer = o.Probe(ctx)
		}
		if answer == grants.Unknown {
			r.notes = append(r.notes, fmt.Sprintf("the form of sudo: sudo.mode is %s, and with your rights the API server doesn't tell whether it knows constrained impersonation; run manager plan in the operator's pod", r.c.Sudo.Mode))
		}
	}
	return grants.ModeOf(found).Next(r.c.Sudo.Mode, answer)
}

// planOrphans plans the deletion of access objects whose tenant is gone.
func (r *rights) planOrphans(tenants []*v1alpha1.LNamespace) {
	living := map[string]bool{}
	for _, tenant := range tenants {
		living[tenant.Name] = true
	}
	keys := slices.SortedFunc(maps.Keys(r.there), func(a, b grants.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		object := r.there[key]
		claimed := grants.IsLeftToCollector(object) || slices.ContainsFunc(grants.Tenants(object), func(tenant string) bool { return living[tenant] })
		if claimed || object.GetDeletionTimestamp() != nil || !grants.IsOurs(object) {
			continue
		}
		r.note(Delete, key, object.GetLabels()[v1alpha1.LabelTenant], "no tenant answers for it any more")
		r.there.Put(key, nil)
	}
}

func (r *rights) note(verb Verb, key grants.Key, tenant, reason string) {
	one := Write{Verb: verb, Group: rbacv1.GroupName, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Tenant: tenant, Reason: reason}
	if verb == Conflict && slices.Contains(r.writes, one) {
		return // while the form of sudo changes, each tenant is planned twice
	}
	r.writes = append(r.writes, one)
}
