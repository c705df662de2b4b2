package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// modeAll is the mode in which every object is a source; the other is that of the default configuration, OptIn.
const modeAll = "All"

// benchKind is a kind whose copies are measured.
type benchKind struct {
	schema.GroupVersionResource
	kind string
	// make returns an object that may become a source, or a copy; its content repeats the letter fill.
	make func(name, fill string) client.Object
}

// benchKinds are what -kinds chooses from, in this order.
var benchKinds = []benchKind{
	{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "Secret",
		func(name, fill string) client.Object { return newSecret(name, fill) }},
	{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", func(name, fill string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metaOf(name), Data: map[string]string{"key": strings.Repeat(fill, 1024)}}
	}},
	{rbacv1.SchemeGroupVersion.WithResource("roles"), "Role", func(name, fill string) client.Object {
		return &rbacv1.Role{ObjectMeta: metaOf(name), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{fill}, Verbs: []string{"get"},
		}}}
	}},
	{rbacv1.SchemeGroupVersion.WithResource("rolebindings"), "RoleBinding", func(name, fill string) client.Object {
		return &rbacv1.RoleBinding{
			ObjectMeta: metaOf(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "user-" + fill}},
		}
	}},
}

func metaOf(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: root, Name: name} }

// kindOf returns the kind of source i; the kinds take turns.
func (s scale) kindOf(i int) benchKind { return s.kinds[i%len(s.kinds)] }

// newSource returns an object that becomes source i when startPatch is applied to it.
func (s scale) newSource(i int, name string) client.Object {
	source := s.kindOf(i).make(name, "a")
	if s.mode == modeAll {
		source.SetLabels(map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeNone})
	}
	return source
}

// startPatch makes a source of an object: by the label propagate, or in mode All by removing the label that keeps it from being one.
func (s scale) startPatch() []byte {
	value := `"` + v1alpha1.ModeUpdate + `"`
	if s.mode == modeAll {
		value = "null"
	}
	return []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelPropagate + `":` + value + `}}}`)
}

// plantSource returns source i, which is a source from the beginning.
func (s scale) plantSource(i int, name string) client.Object {
	source := s.kindOf(i).make(name, "a")
	if s.mode != modeAll {
		source.SetLabels(map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeUpdate})
	}
	return source
}

// measures reports whether a resource is one whose copies are measured.
func (s scale) measures(group, resource string) bool {
	for _, k := range s.kinds {
		if k.Group == group && k.Resource == resource {
			return true
		}
	}
	return false
}

// configuration returns the part of the operator's configuration that lists the kinds, with more kinds for B5; "" for the defaults.
func (s scale) configuration(more ...string) string {
	if s.mode != modeAll && s.scope == "" && len(more) == 0 {
		return ""
	}
	var kinds []string
	for _, k := range s.kinds {
		scope := s.scope
		if scope == "" || k.Group == rbacv1.GroupName { // rights are always watched in the whole cluster
			scope = "Cluster"
		}
		kinds = append(kinds, fmt.Sprintf("{group: %q, kind: %s, mode: %s, scope: %s}", k.Group, k.kind, s.mode, scope))
	}
	return "propagation: {kinds: [" + strings.Join(append(kinds, more...), ", ") + "]}"
}
