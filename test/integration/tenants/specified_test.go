package tenants_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// specified are the access objects of the fixture as docs/resource-samples shows them, written out again
// so that nothing here comes from the code that makes them. What the API server adds is left out.
func (f *fixture) specified(ctx context.Context) []client.Object {
	GinkgoHelper()
	payments, shop := f.get(ctx, f.own("payments")), f.get(ctx, f.own("shop"))
	bob := f.own("bob")
	objects := f.tenantObjects(payments,
		[]rbacv1.Subject{build.RBACUser(f.own("alice")), build.RBACGroup(f.own("devs"))},
		[]rbacv1.Subject{build.RBACUser(bob), build.RBACGroup(f.own("oncall")),
			{Kind: "ServiceAccount", Namespace: f.own("ci"), Name: "deployer"}})
	objects = append(objects, f.tenantObjects(shop,
		[]rbacv1.Subject{build.RBACUser(f.own("dave"))}, []rbacv1.Subject{build.RBACUser(bob)})...)

	self := metav1.ObjectMeta{
		Name:            "warren:self:" + bob,
		Labels:          map[string]string{"app.kubernetes.io/managed-by": "warren", "tenancy.warren.dev/access": "self"},
		Annotations:     map[string]string{"tenancy.warren.dev/user": bob},
		OwnerReferences: []metav1.OwnerReference{reference(payments), reference(shop)},
	}
	return append(objects,
		&rbacv1.ClusterRole{ObjectMeta: self, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{bob}, Verbs: []string{"impersonate"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: self, RoleRef: clusterRole("warren:self:" + bob), Subjects: []rbacv1.Subject{build.RBACUser(bob)}})
}

func (f *fixture) tenantObjects(tenant *v1alpha1.LNamespace, users, sudoers []rbacv1.Subject) []client.Object {
	name, group := tenant.Name, tenant.Name+"-sudoers"
	meta := func(object, access string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: object, OwnerReferences: []metav1.OwnerReference{reference(tenant)}, Labels: map[string]string{
			"app.kubernetes.io/managed-by": "warren", "tenancy.warren.dev/access": access, "tenancy.warren.dev/tenant": name,
		}}
	}
	source := func(object, access string) metav1.ObjectMeta {
		m := meta(object, access)
		m.Namespace, m.Labels["tenancy.warren.dev/propagate"] = name, "update"
		m.Annotations = map[string]string{"tenancy.warren.dev/lnamespace-uid": string(tenant.UID)}
		return m
	}
	sudo := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"groups"}, ResourceNames: []string{group}, Verbs: []string{"impersonate"}},
	}
	if slices.ContainsFunc(sudoers, func(s rbacv1.Subject) bool { return s.Kind != "User" }) {
		sudo = append(sudo, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"warren:sudo:" + name}, Verbs: []string{"impersonate"},
		})
	}
	sudo = append(sudo, rbacv1.PolicyRule{
		APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"userextras/tenancy.warren.dev/reason"}, Verbs: []string{"impersonate"},
	})
	edit := []rbacv1.PolicyRule{{
		APIGroups: []string{"tenancy.warren.dev"}, Resources: []string{"lnamespaces"}, ResourceNames: []string{name},
		Verbs: []string{"get", "update", "patch"},
	}}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta("warren:sudo:"+name, "sudo"), Rules: sudo},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta("warren:sudo:"+name, "sudo"), RoleRef: clusterRole("warren:sudo:" + name), Subjects: sudoers},
		&rbacv1.ClusterRole{ObjectMeta: meta("warren:edit:"+name, "edit"), Rules: edit},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta("warren:edit:"+name, "edit"), RoleRef: clusterRole("warren:edit:" + name),
			Subjects: []rbacv1.Subject{build.RBACUser(f.own("mia")), build.RBACGroup(group)}},
		&rbacv1.RoleBinding{ObjectMeta: source("warren:sudoers", "sudoers"), RoleRef: clusterRole("cluster-admin"),
			Subjects: []rbacv1.Subject{build.RBACGroup(group)}},
		&rbacv1.RoleBinding{ObjectMeta: source("warren:users", "users"), RoleRef: clusterRole("admin"), Subjects: users},
	}
}

// copied is the copy of a source in the sub-namespace: the same binding without an owner, marked as a copy.
func copied(source *rbacv1.RoleBinding, namespace string) *rbacv1.RoleBinding {
	binding := source.DeepCopy()
	binding.Namespace, binding.OwnerReferences = namespace, nil
	binding.Labels, binding.Annotations = maps.Clone(binding.Labels), maps.Clone(binding.Annotations)
	delete(binding.Labels, "tenancy.warren.dev/propagate")
	delete(binding.Labels, "app.kubernetes.io/managed-by") // propagation.excludedLabels
	binding.Labels["tenancy.warren.dev/inherited-from"] = source.Namespace
	return binding
}

func reference(tenant *v1alpha1.LNamespace) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "tenancy.warren.dev/v1alpha1", Kind: "LNamespace", Name: tenant.Name, UID: tenant.UID}
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name}
}

// everything is the access objects that the fixture with pay-web must have.
func (f *fixture) everything(ctx context.Context) map[string]client.Object {
	GinkgoHelper()
	want := f.specified(ctx)
	for _, object := range want {
		if source, ok := object.(*rbacv1.RoleBinding); ok && source.Namespace == f.own("payments") {
			want = append(want, copied(source, f.own("pay-web")))
		}
	}
	return plain(want)
}

// granted are all access objects that exist of the case's tenants and users, copies included.
func (f *fixture) granted(ctx context.Context) []client.Object {
	GinkgoHelper()
	var objects []client.Object
	labelled := client.HasLabels{v1alpha1.LabelAccess}
	roles, bindings, here := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	for _, list := range []client.ObjectList{roles, bindings, here} {
		Expect(f.Admin().List(ctx, list, labelled)).To(Succeed())
	}
	add := func(object client.Object) {
		if strings.Contains(object.GetName(), f.key+"-") || strings.HasPrefix(object.GetNamespace(), f.key+"-") {
			objects = append(objects, object)
		}
	}
	for i := range roles.Items {
		add(&roles.Items[i])
	}
	for i := range bindings.Items {
		add(&bindings.Items[i])
	}
	for i := range here.Items {
		add(&here.Items[i])
	}
	return objects
}

// plain returns the objects by kind and name, with only the fields that a person would write.
func plain(objects []client.Object) map[string]client.Object {
	all := map[string]client.Object{}
	for _, object := range objects {
		object = object.DeepCopyObject().(client.Object)
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetCreationTimestamp(metav1.Time{})
		object.SetManagedFields(nil)
		references := object.GetOwnerReferences()
		slices.SortFunc(references, func(a, b metav1.OwnerReference) int { return strings.Compare(a.Name, b.Name) })
		object.SetOwnerReferences(references)
		if annotations := object.GetAnnotations(); annotations["tenancy.warren.dev/source-hash"] != "" {
			delete(annotations, "tenancy.warren.dev/source-hash") // derived from the other fields
			if len(annotations) == 0 {
				object.SetAnnotations(nil)
			}
		}
		all[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))] = object
	}
	return all
}
