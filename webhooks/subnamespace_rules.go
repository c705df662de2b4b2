package webhooks

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// checkNewSub checks a new SubNamespace by the same rules as its reconciler (controllers/subnamespace). It only warns
// of an obstacle that may pass later, such as another namespace of that name; any other obstacle is a refusal. placed
// reports that the HierarchyConfiguration of the parent namespace asks for a parent, so that the namespace may be in a
// tree soon.
func checkNewSub(s *forest.Snapshot, sub *v1alpha1.SubNamespace, placed bool) findings {
	var f findings
	parent, name := sub.Namespace, sub.Name
	at := field.NewPath("metadata")
	f.addProblems(checkNewKeys(s.Rules(), v1alpha1.SubNamespaceSpec{}, sub.Spec)...)
	f.addWarnings(misplacedKeys(s.Rules(), &v1alpha1.SubNamespace{}, sub)...)
	if o := forest.ParentObstacle(s, parent); o.Exists() {
		managed := s.KindOf(s.Namespace(parent))
		if managed == forest.Root || managed == forest.SubNamespace || placed {
			f.addWarnings(o.Message)
		} else {
			f.addProblems(field.Forbidden(at.Child("namespace"), o.Message))
		}
	}
	if parent == name {
		f.addProblems(field.Forbidden(at.Child("name"), name+" is the parent's own name: a namespace can't be below itself"))
		return f
	}
	switch o := forest.NameObstacle(s, parent, name); {
	case o.Reason == v1alpha1.ReasonProtectedName, o.Reason == v1alpha1.ReasonReservedName:
		f.addProblems(field.Forbidden(at.Child("name"), o.Message))
	case o.Exists():
		f.addWarnings(o.Message)
	}
	if s.Namespace(name) == nil && s.Place(parent).InTree() {
		f.addProblems(checkNewNamespace(s, parent, name)...)
	}
	return f
}

// checkNewNamespace checks a namespace that would be created below parent, which must be in a tree.
func checkNewNamespace(s *forest.Snapshot, parent, name string) field.ErrorList {
	var problems field.ErrorList
	at := field.NewPath("metadata", "name")
	for _, o := range []forest.Obstacle{forest.NamingObstacle(s, parent, name), forest.DepthObstacle(s, parent)} {
		if o.Exists() {
			problems = append(problems, field.Forbidden(at, o.Message))
		}
	}
	root := s.Place(parent).Path[0]
	if s.Limits(root).SubNamespaces == nil {
		return problems
	}
	if why := forest.NoRoom(s, root, forest.CountAwaited(s, root, parent, name), 1); why != "" {
		problems = append(problems, field.Forbidden(at, why))
	}
	return problems
}

// checkNewKeys refuses keys that the configuration doesn't allow, where they are new or have a new value. A key that an
// earlier configuration allowed may stay in the spec; the reconciler doesn't write it on the namespace.
func checkNewKeys(rules forest.Rules, old, now v1alpha1.SubNamespaceSpec) field.ErrorList {
	spec := field.NewPath("spec")
	problems := checkNoBillingKeys(spec.Child("labels"), rules.Billing, old.Labels, now.Labels)
	allowed := func(key string) bool { return rules.Billing.Has(key) || rules.SubLabel != nil && rules.SubLabel(key) }
	problems = append(problems, checkAllowedKeys(spec.Child("labels"), "subNamespaces.labels", allowed, old.Labels, now.Labels)...)
	return append(problems, checkAllowedKeys(spec.Child("annotations"), "subNamespaces.annotations", rules.SubAnnotation, old.Annotations,
		now.Annotations)...)
}

// misplacedKeys warns of new labels and annotations of a SubNamespace itself that its namespace would get by
// spec.labels or spec.annotations. Users of other operators write them there. Keys that the configuration doesn't allow
// in the spec are left out, and so are those of tools.
func misplacedKeys(rules forest.Rules, old, now *v1alpha1.SubNamespace) []string {
	warnings := keysOutsideSpec("labels", rules.SubLabel, old.Labels, now.Labels, now.Spec.Labels)
	return append(warnings, keysOutsideSpec("annotations", rules.SubAnnotation, old.Annotations, now.Annotations, now.Spec.Annotations)...)
}

func keysOutsideSpec[V ~string](what string, allowed func(string) bool, old, now map[string]string, spec map[string]V) []string {
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(now)) {
		_, known := old[key]
		_, stated := spec[key]
		if !known && !stated && allowed != nil && allowed(key) && !isToolKey(key) {
			warnings = append(warnings, "metadata."+what+"["+key+"] doesn't reach the namespace: put it into spec."+what)
		}
	}
	return warnings
}

// isToolKey reports whether a tool writes the key on each object that it manages, or the operator writes it.
func isToolKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return v1alpha1.IsReservedKey(key) || slices.Contains([]string{"app.kubernetes.io", "kubectl.kubernetes.io", "argocd.argoproj.io",
		"helm.sh",
		"meta.helm.sh"}, domain) || strings.HasSuffix(domain, ".toolkit.fluxcd.io")
}

// checkNoBillingKeys refuses new or changed keys that name who pays, even if the configuration allows them in
// SubNamespaces.
func checkNoBillingKeys[V ~string](at *field.Path, billing forest.BillingKeys, old, now map[string]V) field.ErrorList {
	var problems field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if value, known := old[key]; billing.Has(key) && (!known || value != now[key]) {
			problems = append(problems, field.Forbidden(at.Key(key),
				"follows spec.billing of the LNamespace, by billing.namespaceLabels of the configuration: leave the key out"))
		}
	}
	return problems
}

func checkAllowedKeys[V ~string](at *field.Path, by string, allowed func(string) bool, old, now map[string]V) field.ErrorList {
	var problems field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if value, known := old[key]; known && value == now[key] || allowed != nil && allowed(key) {
			continue
		}
		problems = append(problems, field.Forbidden(at.Key(key),
			"not allowed by "+by+" of the configuration: leave the key out, or ask a cluster admin to allow it"))
	}
	return problems
}

// checkNotRequiredChild refuses the deletion of a SubNamespace that the operator would create again at once, because a
// HierarchyConfiguration requires it.
func checkNotRequiredChild(parent *forest.Namespace, hc *v1alpha1.HierarchyConfiguration, name string) field.ErrorList {
	if parent == nil || parent.Terminating || hc == nil || !slices.Contains(hc.Spec.RequiredChildren, v1alpha1.RequiredChild(name)) {
		return nil
	}
	why := name + " is required by HierarchyConfiguration " + hc.Namespace + "/" + hc.Name +
		": take it out of spec.requiredChildren there first"
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), why)}
}
