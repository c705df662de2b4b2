package copies

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// GeneratedManager is the field manager that labels generated objects, and writes nothing else. A label is the
// operator's only if this manager owns it: a label of the same value that somebody else has set stays theirs.
const GeneratedManager = v1alpha1.OperatorName + "-generated"

// Generated is what is kept of an object that has a controller, or that has the operator's label from a time when it
// had a controller.
type Generated struct {
	UID            types.UID
	Controller     types.UID        // empty if it has none
	ControllerKind schema.GroupKind // of the owner that Controller names
	ControllerName string           // of that owner
	Mode           string           // the value of label propagate, if it has that
	Labelled       bool
	Ours           bool // the label is the operator's
	Untouchable    bool // the object is being deleted, or Warren wrote it
}

// GeneratedOf returns what is kept of an object, from its metadata; nil if the object has no controller and no label
// that the operator applied.
func GeneratedOf(meta metav1.Object) *Generated {
	g := &Generated{UID: meta.GetUID(), Ours: ownsLabel(meta.GetManagedFields())}
	g.Mode, g.Labelled = meta.GetLabels()[v1alpha1.LabelPropagate]
	if owner := metav1.GetControllerOfNoCopy(meta); owner != nil {
		version, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil {
			g.Controller, g.ControllerKind, g.ControllerName = owner.UID, version.WithKind(owner.Kind).GroupKind(), owner.Name
		}
	}
	for _, mark := range []string{v1alpha1.LabelInheritedFrom, v1alpha1.LabelDistributedBy, v1alpha1.LabelAccess} {
		if _, ours := meta.GetLabels()[mark]; ours {
			g.Untouchable = true
		}
	}
	g.Untouchable = g.Untouchable || meta.GetDeletionTimestamp() != nil
	if g.Controller == "" && !g.Ours {
		return nil
	}
	return g
}

// ownsLabel reports whether the label propagate was applied by GeneratedManager.
func ownsLabel(entries []metav1.ManagedFieldsEntry) bool {
	for _, entry := range entries {
		if entry.Manager == GeneratedManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil &&
			strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:`+v1alpha1.LabelPropagate+`"`) {
			return true
		}
	}
	return false
}

// GeneratedMode returns the mode that a generator's annotation asks for; "" without the annotation, and for "none". It
// may be a mode that doesn't exist: see IsMode.
func GeneratedMode(generator metav1.Object) string {
	if mode := generator.GetAnnotations()[v1alpha1.AnnotationPropagateGenerated]; mode != v1alpha1.ModeNone {
		return mode
	}
	return ""
}

// IsMode reports whether a generator may ask for this mode.
func IsMode(mode string) bool {
	return mode == "" || mode == v1alpha1.ModeCreate || mode == v1alpha1.ModeUpdate
}

// PlanLabel reports whether the label propagate of a generated object is to be applied with the value wanted, the mode
// that its generator asks for; to apply "" takes the label off. A label that somebody else has set is never touched,
// whatever its value.
func (g *Generated) PlanLabel(wanted string) (apply bool) {
	switch {
	case g.Untouchable:
		return false
	case g.Ours:
		return g.Mode != wanted
	}
	return wanted != "" && !g.Labelled
}
