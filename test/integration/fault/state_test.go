package fault_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// What differs between two runs of one story.
var (
	uid      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|sha256:[0-9a-f]{64}`) // or its digest
	moment   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	volatile = []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"}
)

// state is all objects of a scene, by kind, namespace and name, without what differs from run to run.
func (s *scene) state() (map[string]string, error) {
	objects, err := s.objectsOf(s.key)
	if err != nil {
		return nil, err
	}
	state, contents := map[string]string{}, map[string]string{}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(placeOf(a), placeOf(b)) })
	for _, object := range objects {
		if isOnDemand(object) && slices.Equal(reportedChildren(object), childrenAmong(objects, object.GetNamespace())) {
			continue
		}
		s.describe(object.DeepCopy(), state, contents)
	}
	return state, nil
}

// isOnDemand reports whether the operator made an object to report a trouble, and the trouble is over: the object stays.
func isOnDemand(u *unstructured.Unstructured) bool {
	if u.GetKind() != "HierarchyConfiguration" || u.GetLabels()[v1alpha1.LabelManagedBy] != v1alpha1.OperatorName {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		return c.(map[string]any)["type"] == "Ready" && c.(map[string]any)["status"] == "True"
	})
}

// reportedChildren are the children that a HierarchyConfiguration's status names, sorted.
func reportedChildren(u *unstructured.Unstructured) []string {
	children, _, _ := unstructured.NestedStringSlice(u.Object, "status", "children")
	return slices.Sorted(slices.Values(children))
}

// childrenAmong are the names of the namespaces below parent, sorted.
func childrenAmong(objects []*unstructured.Unstructured, parent string) []string {
	var names []string
	for _, object := range objects {
		if object.GetKind() == "Namespace" && object.GetLabels()[v1alpha1.LabelParent] == parent {
			names = append(names, object.GetName())
		}
	}
	return slices.Sorted(slices.Values(names))
}

// describe adds an object to a state. contents numbers the hashes of copies.
func (s *scene) describe(object *unstructured.Unstructured, state, contents map[string]string) {
	place := placeOf(object)
	metadata := object.Object["metadata"].(map[string]any)
	for _, field := range volatile {
		delete(metadata, field)
	}
	if annotations := object.GetAnnotations(); annotations[v1alpha1.AnnotationSourceHash] != "" {
		annotations[v1alpha1.AnnotationSourceHash] = describeHash(object, contents)
		object.SetAnnotations(annotations)
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	if conditions != nil { // conditions are a map by type: their order means nothing
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
	state[strings.ReplaceAll(place, s.key, "KEY")] = named
}

// describeHash is the hash of a copy without the names of the scene. It compares the place with what it should be. It numbers the
// content, whose hash depends on names, too: copies of one source have the same number. A restart that writes nothing shows that the hash
// is that of the stored object.
func describeHash(object *unstructured.Unstructured, contents map[string]string) string {
	hash := copies.ParseHash(object.GetAnnotations()[v1alpha1.AnnotationSourceHash])
	from := object.GetLabels()[v1alpha1.LabelInheritedFrom]
	slot := copies.Slot{
		Kind: object.GroupVersionKind().GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
	}
	if copies.PlaceOf(slot, from) != hash.Place {
		return "of another place: " + hash.String()
	}
	if contents[hash.Content] == "" {
		contents[hash.Content] = fmt.Sprintf("content %d", len(contents)+1)
	}
	return hash.Mode + " " + contents[hash.Content]
}

// differs returns how a state differs from the wanted one; nil if it does not.
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
