package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/test/build"
)

func TestLossesByGroup(t *testing.T) {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(build.Root("acme"), build.Child("web", "acme"))
	before := configfile.Default()
	before.Propagation.Kinds = nil
	for group, names := range map[string][]string{"rbac.authorization.k8s.io": {"a"}, "authorization.openshift.io": {"a", "b"}} {
		kind := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "RoleBinding"}
		mapper.Add(kind, meta.RESTScopeNamespace)
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind("RoleBindingList"), &unstructured.UnstructuredList{})
		before.Propagation.Kinds = append(before.Propagation.Kinds,
			config.PropagatedKind{Group: group, Version: "v1", Kind: kind.Kind, Mode: config.ModeOptIn})
		for _, name := range names {
			slot := copies.Slot{Kind: kind.GroupKind(), Namespace: "web", Name: name}
			copied := &unstructured.Unstructured{}
			copied.SetGroupVersionKind(kind)
			copied.SetNamespace(slot.Namespace)
			copied.SetName(slot.Name)
			copied.SetLabels(map[string]string{v1alpha1.LabelInheritedFrom: "acme"})
			copied.SetAnnotations(map[string]string{v1alpha1.AnnotationSourceHash: copies.Hash{Mode: v1alpha1.ModeUpdate,
				Place: copies.PlaceOf(slot, "acme"), Content: strings.Repeat("c", 32)}.String()})
			api.WithObjects(copied)
		}
	}
	after := before.DeepCopy()
	for i := range after.Propagation.Kinds {
		after.Propagation.Kinds[i].Mode = config.ModeRemove
	}
	losses, unread, err := Losses(t.Context(), api.Build(), before, after, "warren-system")
	if err != nil || len(unread) > 0 {
		t.Fatalf("unread %v, error %v", unread, err)
	}
	want := []Loss{{What: "places or keys of namespaces", Of: 2}, {What: "copied RoleBindings", Lost: 1, Of: 1},
		{What: "other copies", Lost: 2, Of: 2}}
	if diff := cmp.Diff(want, losses); diff != "" {
		t.Errorf("a RoleBinding of another group is another kind: -want, +got:\n%s", diff)
	}
}
