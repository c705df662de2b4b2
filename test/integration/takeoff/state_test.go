package takeoff_test

import (
	"context"
	"fmt"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// state is what tenants have: each Namespace with its UID and keys, and each object in their namespaces and each access object with its
// UID and content. An object that is made again with another UID differs.
func (s site) state(ctx context.Context) map[string]string {
	GinkgoHelper()
	seen := map[string]string{}
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &rbacv1.RoleBindingList{},
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &v1alpha1.LNamespaceList{}, &v1alpha1.SubNamespaceList{},
	} {
		if err := s.Admin().List(ctx, list); !apierrors.IsNotFound(err) { // our kinds may have been removed
			Expect(err).NotTo(HaveOccurred())
		}
		for _, object := range itemsOf(list) {
			if concerns(object) {
				seen[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))] = describe(object)
			}
		}
	}
	return seen
}

// concerns reports whether an object belongs to a tenant: a namespace of the forest, an object in it, an access object.
func concerns(object client.Object) bool {
	name := object.GetNamespace()
	if _, namespace := object.(*corev1.Namespace); namespace {
		name = object.GetName()
	}
	_, granted := object.GetLabels()[v1alpha1.LabelAccess]
	_, tenant := object.(*v1alpha1.LNamespace)
	return granted || tenant || strings.HasPrefix(name, "payments") || strings.HasPrefix(name, "shop")
}

func describe(object client.Object) string {
	notes := maps.Clone(object.GetAnnotations())
	if notes[v1alpha1.AnnotationLNamespaceUID] != "" {
		notes[v1alpha1.AnnotationLNamespaceUID] = "an LNamespace's" // an adoption changes it
	}
	text := fmt.Sprint(object.GetUID(), object.GetLabels(), notes, object.GetDeletionTimestamp())
	switch o := object.(type) {
	case *corev1.Secret:
		text += fmt.Sprint(o.Data)
	case *corev1.ConfigMap:
		text += fmt.Sprint(o.Data)
	case *rbacv1.RoleBinding:
		text += fmt.Sprint(o.Subjects, o.RoleRef)
	case *rbacv1.ClusterRole:
		text += fmt.Sprint(o.Rules)
	case *rbacv1.ClusterRoleBinding:
		text += fmt.Sprint(o.Subjects)
	}
	return text
}

func itemsOf(list client.ObjectList) []client.Object {
	GinkgoHelper()
	var objects []client.Object
	Expect(meta.EachListItem(list, func(object runtime.Object) error {
		objects = append(objects, object.(client.Object))
		return nil
	})).To(Succeed())
	return objects
}
