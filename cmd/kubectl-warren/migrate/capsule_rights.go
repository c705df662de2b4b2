package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/grants"
)

var roleBindings = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")

// bindingOfCapsule is a RoleBinding that Capsule keeps in every namespace of a Tenant.
type bindingOfCapsule struct {
	ClusterRoleName string            `json:"clusterRoleName"`
	Subjects        []rbacv1.Subject  `json:"subjects"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// ownerOfCapsule is an owner of a Tenant, with the ClusterRoles that Capsule binds to the owner in the Tenant's
// namespaces.
type ownerOfCapsule struct {
	Kind         v1alpha1.SubjectKind `json:"kind"`
	Name         string               `json:"name"`
	ClusterRoles []string             `json:"clusterRoles"`
}

// listedSubject returns the owner as a subject of an LNamespace's lists; false for a service account whose name is
// malformed.
func (o ownerOfCapsule) listedSubject() (v1alpha1.Subject, bool) {
	if o.Kind != v1alpha1.SubjectServiceAccount {
		return v1alpha1.Subject{Kind: o.Kind, Name: o.Name}, true
	}
	namespace, name, ok := strings.Cut(strings.TrimPrefix(o.Name, "system:serviceaccount:"), ":")
	return v1alpha1.Subject{Kind: o.Kind, Namespace: namespace, Name: name}, ok
}

// boundSubject returns the subject of the RoleBindings that Capsule writes for the owner.
func (o ownerOfCapsule) boundSubject() rbacv1.Subject {
	s, _ := o.listedSubject()
	bound := rbacv1.Subject{Kind: string(s.Kind), Namespace: s.Namespace, Name: s.Name}
	if s.Kind != v1alpha1.SubjectServiceAccount {
		bound.APIGroup = rbacv1.GroupName
	}
	return bound
}

// ownersOfTenant returns the owners in the Tenant's spec, and those in its status, which Capsule has found by the
// Tenant's spec.permissions.
func ownersOfTenant(t tenantOfCapsule) (owners []ownerOfCapsule) {
	for _, fields := range [][]string{{"spec", "owners"}, {"status", "owners"}} {
		for _, owner := range decodeObjectList[ownerOfCapsule](t.Object, fields...) {
			same := slices.ContainsFunc(owners, func(o ownerOfCapsule) bool { return o.Kind == owner.Kind && o.Name == owner.Name })
			if !same {
				owners = append(owners, owner)
			}
		}
	}
	return owners
}

// decodeObjectList returns a list of objects at a path; elements of another shape are left out.
func decodeObjectList[T any](object map[string]any, fields ...string) (found []T) {
	list, _, _ := unstructured.NestedSlice(object, fields...)
	for _, item := range list {
		var decoded T
		if fields, ok := item.(map[string]any); ok &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &decoded) == nil {
			found = append(found, decoded)
		}
	}
	return found
}

// usersOfTenant returns the owners that become users of the LNamespace: those that have the ClusterRole of Warren's
// users, and that a list can name. An owner without that ClusterRole would get new rights by the list.
func (e *capsuleEstate) usersOfTenant(t tenantOfCapsule) (users []v1alpha1.Subject) {
	role := e.rules.Access.UserClusterRole
	for _, owner := range ownersOfTenant(t) {
		what := fmt.Sprintf("owner %s %s of Tenant %s", owner.Kind, owner.Name, t.GetName())
		subject, named := owner.listedSubject()
		switch {
		case !slices.Contains(owner.ClusterRoles, role):
			e.addEstateGap(what, fmt.Sprintf("it lacks ClusterRole %s, so it does not become a user of the LNamespace. It keeps these "+
				"ClusterRoles, by RoleBindings: %s. To make sub-namespaces, it needs the right to create SubNamespaces, which ClusterRole admin "+
				"has. An entry in spec.users of the LNamespace gives it ClusterRole %s",
				role, cmp.Or(strings.Join(slices.DeleteFunc(slices.Clone(owner.ClusterRoles), e.isRoleNotReplaced), ", "),
					"nothing"), role))
		case !named:
			e.addEstateGap(what, "the Tenant must write this ServiceAccount as system:serviceaccount:NAMESPACE:NAME: correct that, and plan again")
		default:
			if why := e.reasonNotToList(t, subject); why != "" {
				e.unlisted[t.GetName()] = append(e.unlisted[t.GetName()], unlistedOwner{owner, what, why})
			} else if !slices.Contains(users, subject) {
				users = append(users, subject)
			}
		}
	}
	return users
}

// unlistedOwner is an owner that an LNamespace can't list, and why.
type unlistedOwner struct {
	ownerOfCapsule
	what, why string
}

// isRoleNotReplaced reports whether the bindings of a ClusterRole are deleted with the Tenant without a replacement:
// those that let owners delete namespaces, which in Warren works only by the SubNamespace, and those that let owners
// make and patch namespaces.
func (e *capsuleEstate) isRoleNotReplaced(role string) bool {
	return role == capsuleDeleter || role == capsuleProvisioner || slices.Contains(e.cluster.Peer.GrantRoles, role)
}

// reasonNotToList returns why an LNamespace can't list a subject; "" if it can.
func (e *capsuleEstate) reasonNotToList(t tenantOfCapsule, s v1alpha1.Subject) string {
	alone := &v1alpha1.LNamespace{Spec: v1alpha1.LNamespaceSpec{Users: []v1alpha1.Subject{s}}}
	alone.Name = t.GetName()
	refused := grants.Refusals(alone, grants.Surroundings{
		OperatorNamespace: e.rules.operatorNamespace,
		InTree:            func(namespace string) bool { return slices.Contains(t.namespaces, namespace) },
		Doubt: func(account v1alpha1.Subject) string {
			if e.cluster.Namespaces[account.Namespace] != nil {
				return ""
			}
			return fmt.Sprintf("%s can't be listed, because namespace %s does not exist", account, account.Namespace)
		},
	})
	if len(refused) == 0 {
		return ""
	}
	return refused[0].Why
}

// divideTenantRights divides the RoleBindings that Capsule keeps for a Tenant: kept are those to be made in the root,
// replaced those that the users of the LNamespace don't need any more. Those for which isRoleNotReplaced is true are in
// neither.
func (e *capsuleEstate) divideTenantRights(t tenantOfCapsule) (kept, replaced []bindingOfCapsule) {
	users := e.Tenants[t.GetName()].Users
	kept = slices.DeleteFunc(decodeObjectList[bindingOfCapsule](t.Object, "spec", "additionalRoleBindings"),
		func(b bindingOfCapsule) bool { return e.isRoleNotReplaced(b.ClusterRoleName) })
	for _, owner := range ownersOfTenant(t) {
		subject, named := owner.listedSubject()
		for _, role := range owner.ClusterRoles {
			binding := bindingOfCapsule{ClusterRoleName: role, Subjects: []rbacv1.Subject{owner.boundSubject()}}
			asUser := role == e.rules.Access.UserClusterRole && named && slices.Contains(users, subject)
			switch {
			case e.isRoleNotReplaced(role):
			case asUser:
				replaced = append(replaced, binding)
			default:
				kept = append(kept, binding)
			}
		}
	}
	return kept, replaced
}

// addTenantRights adds a source in the root for each RoleBinding that Capsule keeps in every namespace, and records
// Capsule's objects as its copies. Those that an LNamespace replaces are deleted with the Tenant. Those that Capsule
// keeps in only some namespaces stay there.
func (e *capsuleEstate) addTenantRights(t tenantOfCapsule) {
	root := t.GetName()
	kept, replaced := e.divideTenantRights(t)
	names := make([]string, len(kept))
	var left []string
	for _, replica := range e.bindingsOfTenant(t) {
		gives := func(b bindingOfCapsule) bool { return b.hasSameGrant(replica) }
		i := slices.IndexFunc(kept, gives)
		switch {
		case i >= 0 && (names[i] == "" || names[i] == replica.Name):
			names[i] = replica.Name
			if replica.Namespace != root {
				e.Copies[slotOfBinding(replica.Namespace, replica.Name)] = root
			}
		case e.isRoleNotReplaced(replica.RoleRef.Name) || i < 0 && slices.ContainsFunc(replaced, gives):
			e.covered[replica.Namespace+"/"+replica.Name] = true
		default:
			left = append(left, replica.Namespace+"/"+replica.Name)
		}
	}
	for i, b := range kept {
		if names[i] == "" { // the Tenant has no namespace yet
			names[i] = fmt.Sprintf("capsule-%s-binding-%d", root, i)
		}
		e.addBindingSource(slotOfBinding(root, names[i]), b)
	}
	e.missUnlistableOwners(root, kept, names)
	for _, made := range e.made[root] { // by an earlier run: it needs its final mode, even if the Tenant has changed
		e.Sources[slotOfBinding(root, made)] = Source{Mode: v1alpha1.ModeUpdate}
	}
	if len(left) > 0 {
		e.addEstateGap("RoleBindings of some namespaces of Tenant "+root,
			"they stay as objects of their namespaces, and grant the same rights until you delete them: "+
				strings.Join(left, ", "))
	}
}

// missUnlistableOwners adds a gap for each owner whom the LNamespace can't list. It names the root's RoleBindings by
// which the owner has rights: names[i] is the name of kept[i].
func (e *capsuleEstate) missUnlistableOwners(root string, kept []bindingOfCapsule, names []string) {
	for _, owner := range e.unlisted[root] {
		var from []string
		for i, b := range kept {
			if slices.Contains(b.Subjects, owner.boundSubject()) && !slices.Contains(from, names[i]) {
				from = append(from, names[i])
			}
		}
		e.addEstateGap(owner.what, owner.why+"; it has rights in the whole tree by these RoleBindings in the root: "+strings.Join(from, ", ")+
			". To revoke these rights, remove the owner from the subjects of these RoleBindings")
	}
}

// addBindingSource adds a source to be made: a RoleBinding in the root, which Warren copies to the namespaces below.
func (e *capsuleEstate) addBindingSource(slot copies.Slot, b bindingOfCapsule) {
	subjects := make([]any, 0, len(b.Subjects))
	for _, s := range b.Subjects {
		subject := map[string]any{"kind": s.Kind, "name": s.Name}
		if s.Namespace != "" {
			subject["namespace"] = s.Namespace
		}
		if s.Kind != rbacv1.ServiceAccountKind {
			subject["apiGroup"] = rbacv1.GroupName
		}
		subjects = append(subjects, subject)
	}
	e.Sources[slot] = Source{Mode: v1alpha1.ModeUpdate}
	e.Made[slot] = MadeSource{APIVersion: rbacv1.SchemeGroupVersion.String(), Labels: b.Labels, Annotations: b.Annotations,
		Content: map[string]any{
			"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": b.ClusterRoleName}, "subjects": subjects,
		}}
}

// hasSameGrant reports whether a RoleBinding has b's role and subjects.
func (b bindingOfCapsule) hasSameGrant(binding rbacv1.RoleBinding) bool {
	same := func(a, b rbacv1.Subject) bool {
		return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
	}
	within := func(some, all []rbacv1.Subject) bool {
		return !slices.ContainsFunc(some, func(s rbacv1.Subject) bool {
			return !slices.ContainsFunc(all, func(other rbacv1.Subject) bool { return same(s, other) })
		})
	}
	return binding.RoleRef.Kind == "ClusterRole" && binding.RoleRef.Name == b.ClusterRoleName && within(b.Subjects, binding.Subjects) &&
		within(binding.Subjects, b.Subjects)
}

// bindingsOfTenant returns the RoleBindings that Capsule wrote into the namespaces of a Tenant.
func (e *capsuleEstate) bindingsOfTenant(t tenantOfCapsule) (found []rbacv1.RoleBinding) {
	for _, namespace := range t.namespaces {
		found = append(found, e.bindings[namespace]...)
	}
	return found
}

// bindingsByNamespace returns the RoleBindings among replicas that Capsule keeps in every namespace of a Tenant.
func bindingsByNamespace(replicas []unstructured.Unstructured) map[string][]rbacv1.RoleBinding {
	found := map[string][]rbacv1.RoleBinding{}
	for _, replica := range replicas {
		binding := rbacv1.RoleBinding{}
		if replica.GroupVersionKind().GroupKind() == roleBindings.GroupKind() && replica.GetLabels()[capsuleBinding] != "" &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(replica.Object, &binding) == nil {
			found[binding.Namespace] = append(found[binding.Namespace], binding)
		}
	}
	return found
}

func namesByNamespace(objects []unstructured.Unstructured) map[string][]string {
	names := map[string][]string{}
	for _, object := range objects {
		names[object.GetNamespace()] = append(names[object.GetNamespace()], object.GetName())
	}
	return names
}

func slotOfBinding(namespace, name string) copies.Slot {
	return copies.Slot{Kind: schema.GroupKind{Group: rbacv1.GroupName, Kind: roleBindings.Kind}, Namespace: namespace,
		Name: name}
}
