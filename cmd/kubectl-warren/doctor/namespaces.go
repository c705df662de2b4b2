package doctor

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/grants"
)

// checkSudoGroups looks for bindings of a tenant's group of sudoers, or of the user that stands for it, outside of that
// tenant's tree. Every later sudoer, and any user who creates a tenant of that name, would get the rights of these
// bindings.
func (p Patient) checkSudoGroups(ctx context.Context) Check {
	const name = "sudoers-groups"
	trees := map[string]map[string]string{} // namespace → labels
	err := gather.ListEach(ctx, p.API, newNamespaceList(), func(o client.Object) { trees[o.GetName()] = o.GetLabels() })
	if err != nil {
		return warnOfFailedList(name, "namespaces", err)
	}
	var foreign []string
	err = gather.ListEach(ctx, p.API, &rbacv1.ClusterRoleBindingList{}, func(o client.Object) {
		foreign = append(foreign, sudoersOutOfPlace(o, o.(*rbacv1.ClusterRoleBinding).Subjects, nil)...)
	})
	if err != nil {
		return warnOfFailedList(name, "ClusterRoleBindings", err)
	}
	err = gather.ListEach(ctx, p.API, &rbacv1.RoleBindingList{}, func(o client.Object) {
		foreign = append(foreign, sudoersOutOfPlace(o, o.(*rbacv1.RoleBinding).Subjects, trees[o.GetNamespace()])...)
	})
	if err != nil {
		return warnOfFailedList(name, "RoleBindings", err)
	}
	if len(foreign) == 0 {
		return passOf(name, "no group *"+v1alpha1.SudoersSuffix+" and no user "+v1alpha1.SudoUserPrefix+"* is bound outside of its tenant")
	}
	return warnOf(name, "bound outside of their tenants: "+forest.Few(foreign),
		"remove these bindings, or bind groups and users of other names")
}

// sudoersOutOfPlace returns the groups and users of sudoers to which a binding grants a role outside of their tenant's tree. It
// leaves out the operator's own binding by which sudoers may edit their LNamespace. tree are the labels of the
// binding's namespace; none for a ClusterRoleBinding.
func sudoersOutOfPlace(binding client.Object, subjects []rbacv1.Subject, tree map[string]string) []string {
	var found []string
	for _, s := range subjects {
		tenant, sudoers := grants.SudoersAmong(s)
		if !sudoers {
			continue
		}
		_, within := tree[v1alpha1.TreeLabel(tenant)]
		editsItself := binding.GetNamespace() == "" && binding.GetName() == grants.EditName(tenant) &&
			binding.GetLabels()[v1alpha1.LabelAccess] == v1alpha1.AccessEdit
		if within || editsItself {
			continue
		}
		where := "ClusterRoleBinding " + binding.GetName()
		if binding.GetNamespace() != "" {
			where = "RoleBinding " + binding.GetNamespace() + "/" + binding.GetName()
		}
		found = append(found, s.Name+" in "+where)
	}
	return found
}

// checkProtected looks for namespaces that only the operator's configuration protects. The policies don't read the
// configuration, so they don't protect these namespaces.
func (p Patient) checkProtected(ctx context.Context, f file) Check {
	const name = "protected-namespaces"
	if f.unknown != nil {
		return warnOf(name, "the operator's configuration is not known: "+f.unknown.Error(), f.stepToKnow())
	}
	var bare []string
	err := gather.ListEach(ctx, p.API, newNamespaceList(), func(o client.Object) {
		if f.config.ProtectedNamespaces.Match(o.GetName()) && !byName(o.GetName(), p.Namespace) &&
			o.GetLabels()[v1alpha1.LabelProtected] != v1alpha1.True {
			bare = append(bare, o.GetName())
		}
	})
	switch {
	case err != nil:
		return warnOfFailedList(name, "namespaces", err)
	case len(bare) > 0:
		return warnOf(name, "the configuration protects these namespaces, but they lack label protected, so the policies don't: "+
			forest.Few(bare),
			"run kubectl warren protect NAMESPACE for each of them")
	}
	return passOf(name, "each namespace that the configuration protects has label protected too")
}

// byName reports whether the policies protect a namespace by its name.
func byName(name, operatorNamespace string) bool {
	return name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-") || name == operatorNamespace
}

// newNamespaceList returns an empty list of the metadata of Namespaces.
func newNamespaceList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return list
}
