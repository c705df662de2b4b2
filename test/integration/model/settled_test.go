package model_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// looks is how many times in a row, half a second apart, nothing may have changed.
const looks = 4

// settled waits until the operator has done what the LNamespaces say: each is Ready in its present generation, each copy says
// what its source says, no object waits for the garbage collector, and no access object is written any more.
func settled(ctx context.Context, w *devcluster.World, p population) {
	GinkgoHelper()
	var before map[types.UID]string
	same := 0
	Eventually(func() (string, error) {
		objects, unsettled, err := glance(ctx, w, p)
		if err != nil || unsettled != "" {
			same = 0
			return unsettled, err
		}
		if !maps.Equal(objects, before) {
			before, same = objects, 0
		}
		if same++; same <= looks {
			return "access objects may still change", nil
		}
		return "", nil
	}).WithContext(ctx).WithTimeout(15*time.Minute).WithPolling(time.Second/2).Should(BeEmpty(), "all is done that the LNamespaces say")
}

// glance returns the access objects, each with its version, and what is not done yet.
func glance(ctx context.Context, w *devcluster.World, p population) (map[types.UID]string, string, error) {
	tenants := &v1alpha1.LNamespaceList{}
	roles, everywhere, here := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	if err := w.Admin().List(ctx, tenants); err != nil {
		return nil, "", err
	}
	for _, list := range []client.ObjectList{roles, everywhere, here} {
		if err := w.Admin().List(ctx, list, client.HasLabels{v1alpha1.LabelAccess}); err != nil {
			return nil, "", err
		}
	}
	for _, lns := range tenants.Items {
		for _, t := range []v1alpha1.ConditionType{v1alpha1.ConditionReady, v1alpha1.ConditionAccessReady} {
			if c := v1alpha1.FindCondition(lns.Status.Conditions, t); c == nil || c.Status != "True" || c.ObservedGeneration != lns.Generation {
				return nil, fmt.Sprintf("%s of LNamespace %s: %+v in generation %d", t, lns.Name, c, lns.Generation), nil
			}
		}
	}
	objects := map[types.UID]string{}
	var owners []string
	for i := range roles.Items {
		objects[roles.Items[i].UID] = roles.Items[i].ResourceVersion
		owners = append(owners, givenUp(&roles.Items[i])...)
	}
	for i := range everywhere.Items {
		objects[everywhere.Items[i].UID] = everywhere.Items[i].ResourceVersion
		owners = append(owners, givenUp(&everywhere.Items[i])...)
	}
	for _, binding := range here.Items {
		objects[binding.UID] = binding.ResourceVersion
	}
	if len(owners) > 0 {
		return nil, fmt.Sprintf("the garbage collector has yet to take %q", owners), nil
	}
	return objects, p.lacking(here.Items), nil
}

// givenUp names the owner references of an object that the garbage collector has yet to remove.
func givenUp(object client.Object) []string {
	var names []string
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == "mark-for-deletion" {
			names = append(names, object.GetName()+" of "+reference.Name)
		}
	}
	return names
}

// lacking names a namespace of a tree whose bindings are not those of its root.
func (p population) lacking(bindings []rbacv1.RoleBinding) string {
	subjects := map[types.NamespacedName][]rbacv1.Subject{}
	found := map[types.NamespacedName]bool{}
	for _, binding := range bindings {
		key := client.ObjectKeyFromObject(&binding)
		subjects[key], found[key] = binding.Subjects, true
	}
	for _, root := range slices.Sorted(maps.Keys(p.trees)) {
		for _, namespace := range p.trees[root] {
			for _, name := range []string{"warren:users", "warren:sudoers"} {
				key, source := types.NamespacedName{Namespace: namespace, Name: name}, types.NamespacedName{Namespace: root, Name: name}
				if !found[key] || !equality.Semantic.DeepEqual(subjects[key], subjects[source]) {
					return fmt.Sprintf("RoleBinding %s is not that of %s yet", key, root)
				}
			}
		}
	}
	return ""
}
