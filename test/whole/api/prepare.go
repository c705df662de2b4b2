package api

import (
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// prepare makes u what is stored: unknown fields removed, defaults set, values checked.
func (s *Server) prepare(k *Kind, u *unstructured.Unstructured, old *Record) *Refusal {
	if problems := validation.IsDNS1123Subdomain(strings.NewReplacer(":", "-", "~", "-", "%", "-", "@", "-", "_", "-").
		Replace(strings.ToLower(u.GetName()))); len(problems) > 0 && old == nil {
		return invalid(k, u.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), u.GetName(), problems[0])})
	}
	if k.definition != nil {
		return k.definition.prepare(k, u, old)
	}
	if k.Group == "apiextensions.k8s.io" {
		return nil
	}
	if refusal := normalize(u); refusal != nil {
		return refusal
	}
	setDefaults(k, u)
	if old == nil {
		return nil
	}
	return checkImmutable(k, u, old)
}

// normalize passes u through the Go type of its kind, which removes unknown fields and writes quantities in one way.
func normalize(u *unstructured.Unstructured) *Refusal {
	typed, err := scheme.Scheme.New(u.GroupVersionKind())
	if err != nil {
		panic(fmt.Sprintf("the model does not know the type of %s: %v", u.GroupVersionKind(), err))
	}
	managed := u.GetManagedFields()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return refuse400(fmt.Sprintf("%s in version %q cannot be handled: %v", u.GetKind(), u.GetAPIVersion(), err))
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		panic(err)
	}
	gvk := u.GroupVersionKind()
	u.Object = object
	u.SetGroupVersionKind(gvk)
	u.SetManagedFields(managed)
	return nil
}

// setDefaults sets those defaults of built-in kinds that somebody may see.
func setDefaults(k *Kind, u *unstructured.Unstructured) {
	switch k.Resource {
	case "namespaces":
		if u.GetDeletionTimestamp() == nil {
			setField(u, []any{"kubernetes"}, "spec", "finalizers")
			setField(u, "Active", "status", "phase")
		}
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/metadata.name"] = u.GetName()
		u.SetLabels(labels)
	case "secrets":
		if kind, _, _ := unstructured.NestedString(u.Object, "type"); kind == "" {
			setField(u, "Opaque", "type")
		}
	case "pods":
		if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase == "" {
			setField(u, "Pending", "status", "phase")
		}
	case "rolebindings", "clusterrolebindings":
		setField(u, "rbac.authorization.k8s.io", "roleRef", "apiGroup")
		subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
		for _, each := range subjects {
			if subject, isMap := each.(map[string]any); isMap && subject["kind"] != "ServiceAccount" {
				subject["apiGroup"] = "rbac.authorization.k8s.io"
			}
		}
		if len(subjects) > 0 {
			setField(u, subjects, "subjects")
		}
	}
}

// checkImmutable refuses changes of what may not change.
func checkImmutable(k *Kind, u *unstructured.Unstructured, old *Record) *Refusal {
	if k.Resource == "jobs" && !apiequality.Semantic.DeepEqual(u.Object["spec"], old.Object["spec"]) {
		panic("the model does not change the spec of Jobs")
	}
	paths := map[string]string{"rolebindings": "roleRef", "clusterrolebindings": "roleRef", "secrets": "type"}
	key, has := paths[k.Resource]
	if has && !apiequality.Semantic.DeepEqual(u.Object[key], old.Object[key]) {
		return invalid(k, u.GetName(), field.ErrorList{field.Invalid(field.NewPath(key), u.Object[key], "field is immutable")})
	}
	return nil
}

// trackManager writes managedFields, by the API server's own code.
func (k *Kind) trackManager(u *unstructured.Unstructured, old *Record, child string, o options) {
	if k.Resource == "leases" || k.Resource == "events" {
		return // nobody looks at them, and they are many
	}
	manager, found := k.managers[child]
	if !found {
		var err error
		manager, err = managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), untyped{}, untyped{}, untyped{},
			k.GroupVersionKind, k.GroupVersion(), child, nil)
		if err != nil {
			panic(err)
		}
		k.managers[child] = manager
	}
	live := &unstructured.Unstructured{Object: map[string]any{}}
	live.SetGroupVersionKind(k.GroupVersionKind)
	if old != nil {
		live = old.DeepCopy()
	}
	written, err := manager.Update(live, u, o.manager)
	if err != nil {
		panic(fmt.Sprintf("writing managedFields of %s %s: %v", k.Kind, u.GetName(), err))
	}
	u.Object = written.(*unstructured.Unstructured).Object //nolint:forcetypeassert // it is what came in
}

// untyped converts objects that have one version.
type untyped struct{}

func (untyped) Convert(in, out, _ any) error {
	*out.(*unstructured.Unstructured) = *in.(*unstructured.Unstructured).DeepCopy() //nolint:forcetypeassert // all objects are unstructured
	return nil
}

func (untyped) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (untyped) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (untyped) Default(runtime.Object) {}

func (untyped) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}
