package config_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// A tenth of what fits into about 1.3 MB, which etcd would store, so that the test takes seconds. Kubernetes bounds the annotations of an
// object to 256 KiB together, and nothing else in its metadata. Some policies judge objects only up to a limit, which fewItems meets.
const (
	fewItems        = 500
	mostLabels      = 10_000
	mostAnnotations = 4_000
	mostItems       = 3_000
)

// request is one that a policy judges.
type request struct {
	name       string
	attributes *admission.VersionedAttributes
}

// shape is a large object: how it was, and how it is to be.
type shape struct{ old, now map[string]any }

// metadataShapes are large in a part of the metadata. Each key differs between old and now, or none does.
var metadataShapes = map[string]shape{
	"labels":          {metadata("labels", texts("o", mostLabels)), metadata("labels", texts("n", mostLabels))},
	"annotations":     {metadata("annotations", texts("o", mostAnnotations)), metadata("annotations", texts("n", mostAnnotations))},
	"few labels":      {metadata("labels", texts("o", fewItems)), metadata("labels", texts("n", fewItems))},
	"few annotations": {metadata("annotations", texts("o", 2*fewItems)), metadata("annotations", texts("n", 2*fewItems))},
	"equal labels":    {metadata("labels", texts("n", mostLabels)), metadata("labels", texts("n", mostLabels))},
	"marked labels": {metadata("labels", texts("a.tenancy.warren.dev/o", mostItems)), metadata("labels", texts("a.tenancy.warren.dev/n",
		mostItems))},
	"finalizers":      {metadata("finalizers", list(finalizer("o"))), metadata("finalizers", list(finalizer("n")))},
	"ownerReferences": {metadata("ownerReferences", list(owner("o"))), metadata("ownerReferences", list(owner("n")))},
}

// contents are large in what a resource has beside its metadata. Strings in a list are names of fields.
var contents = map[string]map[string]shape{
	"rolebindings": {
		"subjects":     {field(subjects("view"), "subjects"), field(subjects("edit"), "subjects")},
		"sudoers":      {field(subjects("o-sudoers"), "subjects"), field(subjects("n-sudoers"), "subjects")},
		"few sudoers":  {field(subjects("o-sudoers")[:2*fewItems], "subjects"), field(subjects("n-sudoers")[:2*fewItems], "subjects")},
		"few subjects": {field(subjects("view")[:2*fewItems], "subjects"), field(subjects("edit")[:2*fewItems], "subjects")},
		"sudoers that stay": {field(subjects("n-sudoers"), "subjects"),
			field(append(slices.Clone(subjects("n-sudoers")), subject("x")), "subjects")},
	},
	"configmaps":     {"data": {field(texts("o", mostLabels), "data"), field(texts("n", mostLabels), "data")}},
	"resourcequotas": {"hard": {field(texts("count/o.x", mostLabels), "spec", "hard"), field(texts("count/n.x", mostLabels), "spec", "hard")}},
	"clusterroles":   {"rules": {field(list(rule("o")), "rules"), field(list(rule("n")), "rules")}},
	"lnamespaces":    {"users": {field(list(listed("o")), "spec", "users"), field(list(listed("n")), "spec", "users")}},
}

func init() {
	contents["clusterrolebindings"] = contents["rolebindings"]
}

func metadata(name string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{name: value}}
}

// field returns an object in which value is at path.
func field(value any, path ...string) map[string]any {
	object := map[string]any{}
	_ = unstructured.SetNestedField(object, value, path...)
	return object
}

func texts(prefix string, n int) map[string]any {
	m := make(map[string]any, n)
	for i := range n {
		m[fmt.Sprint(prefix, i)] = ""
	}
	return m
}

func list(item func(i int) any) []any {
	items := make([]any, mostItems)
	for i := range items {
		items[i] = item(i)
	}
	return items
}

func finalizer(name string) func(int) any {
	return func(i int) any { return fmt.Sprint("a.b/", name, i) }
}

func owner(kind string) func(int) any {
	return func(i int) any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "name": "a", "uid": fmt.Sprint(i)}
	}
}

func rule(name string) func(int) any {
	return func(i int) any {
		return map[string]any{"apiGroups": []any{""}, "resources": []any{"users"}, "verbs": []any{"impersonate"},
			"resourceNames": []any{fmt.Sprint(name, i)}}
	}
}

func listed(name string) func(int) any {
	return func(i int) any { return map[string]any{"kind": "User", "name": fmt.Sprint(name, i)} }
}

func subject(name string) any {
	return map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}
}

func subjects(suffix string) []any {
	return list(func(i int) any { return subject(fmt.Sprint(i, suffix)) })
}

// requestsFor are creations and updates, by the user whom the policy judges, of the largest objects of the resources that it matches.
func requestsFor(p *admissionregistrationv1.ValidatingAdmissionPolicy) []request {
	var all []request
	seen := map[string]bool{}
	for _, r := range p.Spec.MatchConstraints.ResourceRules {
		for _, resource := range r.Resources {
			resource, sub, _ := strings.Cut(resource, "/")
			group := r.APIGroups[0]
			switch {
			case resource == "*" && group == "tenancy.warren.dev":
				resource, sub = "lnamespaces", ""
			case resource == "*" && group != "admissionregistration.k8s.io":
				resource, group, sub = "configmaps", "", ""
			case sub == "*":
				sub = ""
			}
			if seen[resource+"/"+sub] {
				continue
			}
			seen[resource+"/"+sub] = true
			for _, shapes := range []map[string]shape{metadataShapes, contents[resource]} {
				for what, s := range shapes {
					if sub == "" {
						all = append(all, newRequest(p, group, resource, sub, what, nil, s.now))
					}
					all = append(all, newRequest(p, group, resource, sub, what, s.old, s.now))
				}
			}
		}
	}
	return all
}

func newRequest(p *admissionregistrationv1.ValidatingAdmissionPolicy, group, resource, sub, what string, old, now map[string]any) request {
	operation, before := admission.Create, runtime.Object(nil)
	after := newObject(p, resource, now)
	if old != nil {
		operation, before = admission.Update, newObject(p, resource, old)
	}
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: resource}
	attributes := admission.NewAttributesRecord(after, before, gvk, "payments", "x", gvr, sub, operation, &metav1.UpdateOptions{}, false,
		asker(p))
	v := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: gvk, VersionedObject: admission.NewLazyObject(after)}
	if before != nil {
		v.VersionedOldObject = admission.NewLazyObject(before)
	}
	return request{strings.Join([]string{string(operation), resource, sub, what}, " "), v}
}

// asker is the user whose requests the policy judges.
func asker(p *admissionregistrationv1.ValidatingAdmissionPolicy) user.Info {
	for _, c := range p.Spec.MatchConditions {
		if name := strings.Split(c.Expression, "userInfo.username == '"); len(name) == 2 {
			return &user.DefaultInfo{Name: strings.TrimSuffix(name[1], "'")}
		}
	}
	return &user.DefaultInfo{Name: "alice", Groups: []string{"system:authenticated"}}
}

// newObject returns the object with a name and the labels for which the policy looks at it more closely.
func newObject(p *admissionregistrationv1.ValidatingAdmissionPolicy, resource string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: maps.Clone(content)}
	meta, _ := content["metadata"].(map[string]any)
	u.Object["metadata"] = maps.Clone(meta)
	if meta == nil {
		u.Object["metadata"] = map[string]any{}
	}
	u.SetName("x")
	if group := p.Spec.MatchConstraints.ResourceRules[0].APIGroups[0]; group == "rbac.authorization.k8s.io" {
		u.SetName("warren:sudo:x")
	}
	if resource == "resourcedistributions" {
		u.Object["spec"] = map[string]any{"resource": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	}
	labels := map[string]any{"tenancy.warren.dev/inherited-from": "a"}
	switch {
	case resource == "namespaces":
		labels = map[string]any{"tenancy.warren.dev/type": "root"}
	case p.Spec.MatchConstraints.ObjectSelector != nil:
		labels = map[string]any{"tenancy.warren.dev/propagate": "update"}
	}
	if own, ok := meta["labels"].(map[string]any); ok {
		maps.Copy(labels, own)
	}
	u.Object["metadata"].(map[string]any)["labels"] = labels
	return u
}
