package hierarchy

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// mostRoles bounds the ClusterRoles that are read to find the holders of one namespace, which are the subjects that can
// administer it through a RoleBinding in it.
const mostRoles = 50

// recordHolders adds annotation held-by to change, which places n below parent in a tenant's tree. The annotation names
// the subjects of the tenant's lists that hold n. When the tenant lists none of them any more, n leaves the tree. The
// RoleBindings of n are read from the API server, before the tenant's RoleBindings are copied to n.
func (r *Reconciler) recordHolders(ctx context.Context, s *forest.Snapshot, n *forest.Namespace, parent string,
	change *forest.Change) error {
	tenant, needed := forest.NeedsHolders(s, n.Name, parent)
	if !needed {
		return nil
	}
	holders, err := r.gatherHolders(ctx, n.Name, tenant)
	if err != nil {
		return err
	}
	if record := forest.RecordOfHolders(holders); record != nil || n.Annotations[v1alpha1.AnnotationHeldBy] != "" {
		if change.Annotations == nil {
			change.Annotations = map[string]*string{}
		}
		change.Annotations[v1alpha1.AnnotationHeldBy] = record
	}
	return nil
}

// gatherHolders returns the subjects that the tenant lists and that a RoleBinding of the namespace allows to change
// RoleBindings there. RoleBindings that the operator wrote don't count.
func (r *Reconciler) gatherHolders(ctx context.Context, namespace string, tenant *forest.Tenant) ([]string, error) {
	bindings, roles := &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}
	for _, list := range []client.ObjectList{bindings, roles} {
		if err := r.Namespaces.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("looking for who holds namespace %s: %w", namespace, err)
		}
	}
	powers := map[rbacv1.RoleRef]bool{} // of the Roles in the namespace
	for i := range roles.Items {
		powers[rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roles.Items[i].Name}] = changesBindings(roles.Items[i].Rules)
	}
	clusterPowers := map[rbacv1.RoleRef]bool{}
	var holders []string
	for i := range bindings.Items {
		listed := listedSubjects(&bindings.Items[i], tenant)
		if len(listed) == 0 {
			continue
		}
		power, err := r.findPower(ctx, clusterPowers, bindings.Items[i].RoleRef)
		if err != nil {
			return nil, err
		}
		if power || powers[bindings.Items[i].RoleRef] {
			holders = append(holders, listed...)
		}
	}
	return holders, nil
}

// findPower reports whether a ClusterRole lets its holder change RoleBindings. It remembers the answers in powers, and
// reads no more ClusterRoles once powers has mostRoles answers: then it reports true. Only somebody who wants to delay
// the operator, or to hide a holder from it, binds more.
func (r *Reconciler) findPower(ctx context.Context, powers map[rbacv1.RoleRef]bool, ref rbacv1.RoleRef) (bool, error) {
	power, known := powers[ref]
	switch {
	case known || ref.Kind != "ClusterRole":
		return power, nil
	case len(powers) >= mostRoles:
		return true, nil
	}
	role := &rbacv1.ClusterRole{}
	if err := r.Namespaces.Live.Get(ctx, client.ObjectKey{Name: ref.Name}, role); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ClusterRole %s: %w", ref.Name, err)
	}
	powers[ref] = changesBindings(role.Rules)
	return powers[ref], nil
}

// listedSubjects returns those subjects of a binding that are on the tenant's lists, as Subject.String writes them. It
// returns none for a binding that the operator wrote.
func listedSubjects(binding *rbacv1.RoleBinding, tenant *forest.Tenant) []string {
	if binding.Labels[v1alpha1.LabelAccess] != "" || binding.Labels[v1alpha1.LabelInheritedFrom] != "" {
		return nil
	}
	var listed []string
	for _, s := range binding.Subjects {
		who := v1alpha1.Subject{Kind: v1alpha1.SubjectKind(s.Kind), Namespace: s.Namespace, Name: s.Name}.String()
		if tenant.Listed[who] {
			listed = append(listed, who)
		}
	}
	return listed
}

// changesBindings reports whether rules let their holder change every RoleBinding.
func changesBindings(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		has := func(values []string, wanted string) bool {
			return slices.Contains(values, wanted) || slices.Contains(values, "*")
		}
		return len(rule.ResourceNames) == 0 && has(rule.Verbs, "update") && has(rule.APIGroups, rbacv1.GroupName) &&
			has(rule.Resources, "rolebindings")
	})
}
