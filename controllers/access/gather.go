package access

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/access"
)

// facts are all that one pass over a tenant decides upon.
type facts struct {
	deleting bool
	own      bool // the root Namespace is this LNamespace's
	settings Settings
	mode     access.Mode
	roleless bool // the ClusterRole of users doesn't exist
	input    access.Facts
	objects  access.Objects
	actual   access.Actual
	group    groupState
}

// withheld says what the facts don't allow to be granted.
func (f *facts) withheld() access.Withheld {
	return access.Withheld{
		Everything:    !f.own && !f.deleting,
		Sudo:          f.groupInUse(),
		Users:         f.roleless,
		SudoAdditions: f.group.pending && f.mode.Forms.Legacy,
		// Until its finalizer withdraws everything, a tenant that is being deleted keeps what it has; a list may still shrink.
		Additions: f.deleting,
	}
}

// groupInUse says whether sudo would give what somebody else bound to the group. In the constrained form alone it ends at the
// edge of the tree, whatever is bound.
func (f *facts) groupInUse() bool { return len(f.group.elsewhere) > 0 && f.mode.Forms.Legacy }

// tenant reads an LNamespace, and forgets it where it is gone.
func (r *Reconciler) tenant(ctx context.Context, name string) (*v1alpha1.LNamespace, error) {
	tenant := &v1alpha1.LNamespace{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, tenant)
	if apierrors.IsNotFound(err) {
		r.forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading LNamespace %s: %w", name, err)
	}
	return tenant, nil
}

func (r *Reconciler) forget(tenant string) {
	r.groups.forget(tenant)
	r.patience.Forget(tenant)
	r.changed.Delete(tenant)
	r.leaving.Delete(tenant)
	r.told.Delete(tenant)
	r.blocked.set(tenant, nil)
}

func (r *Reconciler) gather(ctx context.Context, tenant *v1alpha1.LNamespace) (*facts, error) {
	f := &facts{
		deleting: !tenant.DeletionTimestamp.IsZero(),
		own:      r.Forest.Owns(tenant.Name, tenant.UID),
		settings: r.Config(),
		mode:     r.modes.now(),
	}
	f.input = r.input(tenant, f.settings, f.mode)
	f.objects = access.For(tenant, f.input)
	var err error
	if f.actual, err = r.actual(ctx, tenant, f.objects); err != nil {
		return nil, err
	}
	if f.mode.Unavailable {
		f.objects = access.For(access.Holding(tenant, f.actual), f.input)
	}
	if f.deleting {
		return f, nil
	}
	if !f.own {
		r.groups.forget(tenant.Name)
		return f, nil
	}
	exists, err := r.roles.exists(ctx, f.settings.UserClusterRole)
	if err != nil {
		return nil, err
	}
	f.roleless = !exists
	f.group, err = r.groups.look(ctx, tenant.Name, f.objects.Sudo.Binding, f.actual)
	return f, err
}

// input takes what the desired objects depend on.
func (r *Reconciler) input(tenant *v1alpha1.LNamespace, settings Settings, mode access.Mode) access.Facts {
	inTree := func(namespace string) bool { return r.Forest.InTree(namespace, tenant.Name) }
	return access.Facts{
		Mode:            mode.Told,
		Forms:           mode.Forms,
		UserClusterRole: settings.UserClusterRole,
		Refused:         access.Refusals(tenant, inTree, settings.OperatorNamespace),
	}
}

// actual reads what exists under the names of objects, and the shared objects that the tenant owns.
func (r *Reconciler) actual(ctx context.Context, tenant *v1alpha1.LNamespace, objects access.Objects) (access.Actual, error) {
	actual := access.Actual{}
	if err := r.owned(ctx, tenant.Name, actual); err != nil {
		return nil, err
	}
	blocked := r.blocked.of(tenant.Name)
	for _, key := range objects.Keys() {
		object, err := r.cached(ctx, key)
		if object == nil && err == nil && blocked[key] {
			object, err = r.live(ctx, key) // the cache doesn't hold what stood in the way
		}
		if err != nil {
			return nil, err
		}
		if object != nil {
			actual[key] = object
		}
	}
	return actual, nil
}

// owned adds the self pairs of which the tenant is an owner, of whatever users.
func (r *Reconciler) owned(ctx context.Context, tenant string, actual access.Actual) error {
	of := client.MatchingFields{indexTenant: tenant}
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	if err := r.Client.List(ctx, roles, of); err != nil {
		return fmt.Errorf("listing ClusterRoles of tenant %s: %w", tenant, err)
	}
	if err := r.Client.List(ctx, bindings, of); err != nil {
		return fmt.Errorf("listing ClusterRoleBindings of tenant %s: %w", tenant, err)
	}
	add := func(object access.Object) {
		if _, ok := access.SelfUser(object.GetName()); !ok {
			return
		}
		if object = r.recent.latest(access.KeyOf(object), object); object != nil {
			actual[access.KeyOf(object)] = object
		}
	}
	for i := range roles.Items {
		add(&roles.Items[i])
	}
	for i := range bindings.Items {
		add(&bindings.Items[i])
	}
	return nil
}

// cached reads an object from the cache, or what was last written where that is later. It is nil if there is none.
func (r *Reconciler) cached(ctx context.Context, key access.Key) (access.Object, error) {
	object, err := read(ctx, r.Client, key)
	if err != nil {
		return nil, err
	}
	return r.recent.latest(key, object), nil
}

// live reads an object from the API server. It is nil if there is none.
func (r *Reconciler) live(ctx context.Context, key access.Key) (access.Object, error) {
	return read(ctx, r.Live, key)
}

func read(ctx context.Context, from client.Reader, key access.Key) (access.Object, error) {
	object := key.New()
	err := from.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return object, nil
}
