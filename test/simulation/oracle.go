package simulation

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// The functions of this file say what the objects of a world ask for, by the text of docs/behaviour/propagation.md. They are a second
// opinion on the planner: they share only the forest with it. The model itself knows which objects are copies (field from of an object).

// wish is what a world asks for at a slot.
type wish int

const (
	nothing wish = iota // no copy
	asIs                // whatever is there stays: something above can't be judged, or nothing may be written
	copied              // a copy of the source
)

// wanted returns what is to be at a slot, and the slot of its source.
func (h *history) wanted(w world, slot copies.Slot) (wish, copies.Slot) {
	above, managed := w.forest.Sources(slot.Namespace)
	if !managed {
		return asIs, copies.Slot{}
	}
	if h.isRemoved(slot) {
		return nothing, copies.Slot{}
	}
	for _, from := range above.Names {
		at := slot.At(from)
		o := w.at(at)
		if o == nil {
			continue
		}
		switch mode := modeOf(at, o); {
		case mode == "" || mode == v1alpha1.ModeNone:
		case mode == "typo", o.meta.DeletionTimestamp != nil:
			return asIs, at
		case len(o.meta.Finalizers) > 0:
		case !selects(o, w, slot.Namespace):
		default:
			return copied, at
		}
	}
	return nothing, copies.Slot{}
}

func (h *history) isRemoved(slot copies.Slot) bool {
	return h.script.setup.removed && slot.Kind == secrets.GroupKind()
}

// modeOf returns the mode of a source; "" for an object that is none. Every ConfigMap that is no copy is a source.
func modeOf(slot copies.Slot, o *object) string {
	_, inherited := o.meta.Labels[v1alpha1.LabelInheritedFrom]
	mode, opted := o.meta.Labels[v1alpha1.LabelPropagate]
	switch {
	case inherited || isCopy(slot, o):
		return ""
	case !opted && slot.Kind == configMaps.GroupKind():
		return v1alpha1.ModeUpdate
	}
	return mode
}

func selects(source *object, w world, namespace string) bool {
	selector, err := labels.Parse(source.meta.Annotations[v1alpha1.AnnotationSelect])
	return err == nil && selector.Matches(labels.Set(w.forest.Namespace(namespace).Labels))
}

// holds reports whether an object is what a copy of the object at from should be.
func (w world) holds(o *object, from copies.Slot) bool {
	source := w.at(from)
	if source == nil {
		return false
	}
	wantedLabels, wantedAnnotations := maps.Clone(source.meta.Labels), maps.Clone(source.meta.Annotations)
	delete(wantedLabels, v1alpha1.LabelPropagate)
	delete(wantedAnnotations, v1alpha1.AnnotationSelect)
	annotations := maps.Clone(o.meta.Annotations)
	delete(annotations, v1alpha1.AnnotationSourceHash)
	labels := maps.Clone(o.meta.Labels)
	delete(labels, v1alpha1.LabelInheritedFrom)
	return reflect.DeepEqual(o.rest, source.rest) && maps.Equal(labels, wantedLabels) && maps.Equal(annotations, wantedAnnotations) &&
		o.meta.Labels[v1alpha1.LabelInheritedFrom] == from.Namespace && o.from == from.Namespace
}

// isRun reports whether the object is a copy of a ResourceDistribution.
func isRun(o *object) bool {
	_, labelled := o.meta.Labels[v1alpha1.LabelDistributedBy]
	return labelled
}

// roleOf returns the Role that a RoleBinding names, or "".
func roleOf(o *object) string {
	if ref, _ := o.rest["roleRef"].(map[string]any); ref["kind"] == "Role" {
		return ref["name"].(string)
	}
	return ""
}

// meansSameRole reports whether a binding at slot means the same Role as the binding at from: the Role beside slot is a copy of the Role
// beside from, or both are copies of one Role.
func (w world) meansSameRole(slot, from copies.Slot, role string) bool {
	origin := func(namespace string) string {
		at := slotOf(roles, namespace, role)
		o := w.at(at)
		if o == nil || o.meta.DeletionTimestamp != nil {
			return ""
		}
		if o.meta.Labels[v1alpha1.LabelInheritedFrom] != "" && o.mode() == v1alpha1.ModeUpdate {
			return o.from
		}
		return ""
	}
	there := origin(slot.Namespace)
	return there != "" && (there == from.Namespace || there == origin(from.Namespace))
}
