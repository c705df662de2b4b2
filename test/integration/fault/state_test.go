package fault_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// kinds are those of which a state consists.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Namespace"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	rbacv1.SchemeGroupVersion.WithKind("Role"),
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	v1alpha1.GroupVersion.WithKind("LNamespace"),
	v1alpha1.GroupVersion.WithKind("SubNamespace"),
	v1alpha1.GroupVersion.WithKind("HierarchyConfiguration"),
}

// What differs between two runs of one story.
var (
	uid      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|sha256:[0-9a-f]{64}`) // or its digest
	moment   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	volatile = []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"}
)

// state is all objects of a scene, by kind, namespace and name, without what differs from run to run.
func (s *scene) state(ctx context.Context) (map[string]string, error) {
	state := map[string]string{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.Admin().List(ctx, list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			s.describe(&list.Items[i], state)
		}
	}
	return state, nil
}

// describe adds an object to a state if it is of this scene.
func (s *scene) describe(object *unstructured.Unstructured, state map[string]string) {
	place := object.GetNamespace() + "/" + object.GetName()
	if !strings.Contains(place, s.key+"-") || object.GetName() == "kube-root-ca.crt" {
		return
	}
	metadata := object.Object["metadata"].(map[string]any)
	for _, field := range volatile {
		delete(metadata, field)
	}
	annotations := object.GetAnnotations()
	if hash, copied := annotations[v1alpha1.AnnotationSourceHash]; copied { // the names of the scene are in it
		mode, _, _ := strings.Cut(hash, ":")
		annotations[v1alpha1.AnnotationSourceHash] = mode
		object.SetAnnotations(annotations)
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	if conditions != nil { // a map by type, whatever came first
		slices.SortFunc(conditions, func(a, b any) int {
			return cmp.Compare(fmt.Sprint(a.(map[string]any)["type"]), fmt.Sprint(b.(map[string]any)["type"]))
		})
		_ = unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions")
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		panic(err)
	}
	named := strings.ReplaceAll(string(text), s.key, "KEY")
	named = moment.ReplaceAllString(uid.ReplaceAllString(named, "UID"), "TIME")
	state[object.GetKind()+" "+strings.ReplaceAll(place, s.key, "KEY")] = named
}

// differs says how a state is other than the one that is wanted; nil if it isn't.
func differs(state, wanted map[string]string) error {
	var lines []string
	for _, at := range slices.Sorted(maps.Keys(wanted)) {
		switch now, there := state[at]; {
		case !there:
			lines = append(lines, "missing: "+at)
		case now != wanted[at]:
			lines = append(lines, fmt.Sprintf("%s is\n  %s, wanted\n  %s", at, now, wanted[at]))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(state)) {
		if _, there := wanted[at]; !there {
			lines = append(lines, "too much: "+at+"\n  "+state[at])
		}
	}
	if lines == nil {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
