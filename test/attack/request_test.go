package attack_test

import (
	"context"
	"fmt"
	"maps"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/api/v1alpha1"
)

// Targets are written KIND NAME or KIND NAMESPACE/NAME, bodies in YAML, with $D for our domain. A name that ends in * means all names
// with that beginning; the creation of such a target asks for a generated name.

// request is a request that an actor really sends to the API server.
type request struct {
	what, target string
	send         func(context.Context, caller) error
}

// caller sends requests as an actor. In a rehearsal the API server keeps nothing.
type caller struct {
	client.Client
	// Admin reads the object that a put changes.
	Admin client.Client
	// Kubectl runs kubectl as the same actor.
	Kubectl func(ctx context.Context, stdin string, args ...string) error
}

var kinds = map[string]schema.GroupVersionKind{
	"namespace":                      {Version: "v1", Kind: "Namespace"},
	"pod":                            {Version: "v1", Kind: "Pod"},
	"secret":                         {Version: "v1", Kind: "Secret"},
	"configmap":                      {Version: "v1", Kind: "ConfigMap"},
	"service":                        {Version: "v1", Kind: "Service"},
	"serviceaccount":                 {Version: "v1", Kind: "ServiceAccount"},
	"limitrange":                     {Version: "v1", Kind: "LimitRange"},
	"resourcequota":                  {Version: "v1", Kind: "ResourceQuota"},
	"networkpolicy":                  {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	"endpointslice":                  {Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
	"deployment":                     {Group: "apps", Version: "v1", Kind: "Deployment"},
	"statefulset":                    {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	"event":                          {Version: "v1", Kind: "Event"},
	"replicaset":                     {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	"persistentvolumeclaim":          {Version: "v1", Kind: "PersistentVolumeClaim"},
	"job":                            {Group: "batch", Version: "v1", Kind: "Job"},
	"cronjob":                        {Group: "batch", Version: "v1", Kind: "CronJob"},
	"customresourcedefinition":       {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	"role":                           rbacv1.SchemeGroupVersion.WithKind("Role"),
	"rolebinding":                    rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	"clusterrole":                    rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	"clusterrolebinding":             rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	"lnamespace":                     v1alpha1.GroupVersion.WithKind("LNamespace"),
	"subnamespace":                   v1alpha1.GroupVersion.WithKind("SubNamespace"),
	"sudorequest":                    v1alpha1.GroupVersion.WithKind("SudoRequest"),
	"certificatesigningrequest":      {Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"},
	"resourcedistribution":           v1alpha1.GroupVersion.WithKind("ResourceDistribution"),
	"hierarchyconfiguration":         v1alpha1.GroupVersion.WithKind("HierarchyConfiguration"),
	"policybinding":                  {Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	"validatingwebhookconfiguration": {Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	"mutatingwebhookconfiguration":   {Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
}

// spelled replaces $D by Warren's domain.
func spelled(text string) string { return strings.ReplaceAll(text, "$D", v1alpha1.Domain) }

// object returns the target with this content. It panics on a mistake, which can only be the test's own.
func object(target, body string) *unstructured.Unstructured {
	word, name, _ := strings.Cut(spelled(target), " ")
	kind, known := kinds[word]
	if !known {
		panic(fmt.Sprintf("target %q: no kind %q", target, word))
	}
	u := &unstructured.Unstructured{Object: content(body)}
	u.SetGroupVersionKind(kind)
	if namespace, rest, namespaced := strings.Cut(name, "/"); namespaced {
		u.SetNamespace(namespace)
		name = rest
	}
	if prefix, generated := strings.CutSuffix(name, "*"); generated {
		u.SetGenerateName(prefix)
	} else {
		u.SetName(name)
	}
	return u
}

func content(body string) map[string]any {
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(spelled(body)), &fields); err != nil {
		panic(fmt.Sprintf("%v in %s", err, body))
	}
	return fields
}

func asJSON(body string) []byte {
	text, err := yaml.YAMLToJSON([]byte(spelled(body)))
	if err != nil {
		panic(fmt.Sprintf("%v in %s", err, body))
	}
	return text
}

// create sends a POST.
func create(target, body string) request {
	return request{"create " + target + " " + body, target, func(ctx context.Context, c caller) error {
		return c.Create(ctx, object(target, body))
	}}
}

// merge sends a merge patch, to a subresource if one is named.
func merge(target, body string, subresource ...string) request {
	return patch(types.MergePatchType, target, body, subresource)
}

// jsonPatch sends a JSON patch.
func jsonPatch(target, body string, subresource ...string) request {
	return patch(types.JSONPatchType, target, body, subresource)
}

func patch(form types.PatchType, target, body string, subresource []string) request {
	what := strings.Join(append([]string{"patch", target, body}, subresource...), " ")
	return request{what, target, func(ctx context.Context, c caller) error {
		change := client.RawPatch(form, asJSON(body))
		if len(subresource) > 0 {
			return c.SubResource(subresource[0]).Patch(ctx, object(target, ""), change)
		}
		return c.Patch(ctx, object(target, ""), change)
	}}
}

// put sends a PUT of the stored object with the body merged into it.
func put(target, body string, subresource ...string) request {
	what := strings.Join(append([]string{"put", target, body}, subresource...), " ")
	return request{what, target, func(ctx context.Context, c caller) error {
		u := object(target, "")
		if err := c.Admin.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return fmt.Errorf("reading what is to be put: %w", err)
		}
		mergeInto(u.Object, content(body))
		if len(subresource) > 0 {
			return c.SubResource(subresource[0]).Update(ctx, u)
		}
		return c.Update(ctx, u)
	}}
}

// mergeInto changes fields as a merge patch would.
func mergeInto(fields, change map[string]any) {
	for key, value := range change {
		below, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(fields, key)
		case isMap:
			if old, _ := fields[key].(map[string]any); old == nil {
				fields[key] = map[string]any{}
			} else {
				fields[key] = maps.Clone(old)
			}
			mergeInto(fields[key].(map[string]any), below)
		default:
			fields[key] = value
		}
	}
}

// remove sends a DELETE.
func remove(target string) request {
	return request{"delete " + target, target, func(ctx context.Context, c caller) error {
		return c.Delete(ctx, object(target, ""))
	}}
}

// sweep sends a DELETE of the collection that the target is in.
func sweep(target string) request {
	return request{"delete all of " + target, target, func(ctx context.Context, c caller) error {
		u := object(target, "")
		return c.DeleteAllOf(ctx, u, client.InNamespace(u.GetNamespace()))
	}}
}

// list sends a GET of the collection that the target is in.
func list(target string) request {
	return request{"list " + target, target, func(ctx context.Context, c caller) error {
		u := object(target, "")
		return c.List(ctx, listOf(u), client.InNamespace(u.GetNamespace()))
	}}
}

func listOf(u *unstructured.Unstructured) *unstructured.UnstructuredList {
	all := &unstructured.UnstructuredList{}
	kind := u.GroupVersionKind()
	kind.Kind += "List"
	all.SetGroupVersionKind(kind)
	return all
}

// kubectl runs kubectl, with a manifest on stdin for `-f -`.
func kubectl(target, manifest string, args ...string) request {
	return request{"kubectl " + strings.Join(args, " "), target, func(ctx context.Context, c caller) error {
		var spelledOut []string
		for _, arg := range args {
			spelledOut = append(spelledOut, spelled(arg))
		}
		return c.Kubectl(ctx, spelled(manifest), spelledOut...)
	}}
}
