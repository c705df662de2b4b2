package access

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/paging"
)

// inPlace reports whether every tenant with sudo has rules of both forms. In a switch to Constrained, every namespace of its tree that is
// not terminating must also have the RoleBinding that the constrained form needs there. After an error, inPlace reports false.
func (m *modes) inPlace(ctx context.Context, mode grants.Mode) bool {
	err := m.checkInPlace(ctx, mode)
	if err != nil {
		ctrl.Log.WithName("access").V(1).Info("sudo mode switch is not complete", "waitsFor", err.Error())
	}
	return err == nil
}

// checkInPlace checks the rules and the roots of all tenants first, because the cache holds them. The copies below the roots are in
// no cache: they are listed only when nothing else is missing.
func (m *modes) checkInPlace(ctx context.Context, mode grants.Mode) error {
	tenants := &v1alpha1.LNamespaceList{}
	if err := m.objects.client.List(ctx, tenants); err != nil {
		return fmt.Errorf("listing LNamespaces: %w", err)
	}
	granted := map[string]grants.Object{} // by tenant with sudoers: the ClusterRoleBinding of its sudoers
	for i := range tenants.Items {
		binding, err := m.checkSwitched(ctx, &tenants.Items[i], mode)
		if err != nil {
			return err
		}
		if binding != nil {
			granted[tenants.Items[i].Name] = binding
		}
	}
	if mode.Towards() != v1alpha1.SudoConstrained || len(granted) == 0 {
		return nil
	}
	return m.checkCopies(ctx, granted)
}

// checkSwitched returns an error that names the first object of the tenant, in its pairs or its root, that still lacks the new form.
// Without an error it returns the binding of the tenant's sudoers. That is nil if the tenant has no sudo, is being deleted, or doesn't own
// its root.
func (m *modes) checkSwitched(ctx context.Context, tenant *v1alpha1.LNamespace, mode grants.Mode) (grants.Object, error) {
	if !tenant.DeletionTimestamp.IsZero() || !m.view.Owns(tenant.Name, tenant.UID) {
		return nil, nil
	}
	objects := grants.For(tenant, planInput(m.view, tenant, m.config, mode))
	pairs := objects.SudoPairs()
	granted, err := m.objects.readCached(ctx, grants.KeyOf(pairs[0].Binding))
	if err != nil || granted == nil || len(grants.Subjects(granted)) == 0 {
		return nil, err // without sudoers, the switch interrupts nobody
	}
	for _, pair := range pairs {
		role, err := m.objects.readCached(ctx, grants.KeyOf(pair.Role))
		if err != nil {
			return nil, err
		}
		if role != nil && grants.FormsIn(role.(*rbacv1.ClusterRole)) != mode.Forms {
			return nil, fmt.Errorf("the rules of %s", grants.KeyOf(pair.Role))
		}
	}
	if mode.Towards() != v1alpha1.SudoConstrained {
		return granted, nil
	}
	key := grants.KeyOf(objects.SudoOn)
	binding, err := m.objects.readCached(ctx, key)
	if err != nil {
		return nil, err
	}
	if binding == nil || !grants.SameSubjects(binding, granted) {
		return nil, fmt.Errorf("%s", key)
	}
	return granted, nil
}

// checkCopies returns nil if every namespace below the roots of the tenants in granted has the copy that lets their sudoers use the
// constrained form. Terminating namespaces don't count.
func (m *modes) checkCopies(ctx context.Context, granted map[string]grants.Object) error {
	there := map[string]grants.Object{} // copies by namespace
	err := paging.Each(ctx, m.objects.live, &rbacv1.RoleBindingList{}, scanPage, func(object client.Object) error {
		if object.GetName() == grants.SudoOnBinding {
			there[object.GetNamespace()] = object.(grants.Object)
		}
		return nil
	}, client.MatchingLabels{v1alpha1.LabelAccess: v1alpha1.AccessSudo}, client.HasLabels{v1alpha1.LabelInheritedFrom})
	if err != nil {
		return fmt.Errorf("listing the RoleBindings %s in sub-namespaces: %w", grants.SudoOnBinding, err)
	}
	for tenant, binding := range granted {
		for _, namespace := range m.view.Living(tenant) {
			if namespace != tenant && (there[namespace] == nil || !grants.SameSubjects(there[namespace], binding)) {
				return fmt.Errorf("RoleBinding %s/%s", namespace, grants.SudoOnBinding)
			}
		}
	}
	return nil
}
