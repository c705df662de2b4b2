// Package migrate moves a cluster from another operator of tenants or namespace trees, the peer, to Warren: it reads
// the peer's objects, plans the writes by which Warren takes over, and carries them out with the caller's rights.
//
// For each peer, a file (hnc.go, accurate.go, capsule.go) turns the peer's objects into an Estate, which is independent
// of the peer. NewPlan and NewUndo are pure: from the cluster's objects they compute the writes that are still missing.
// So an interrupted migration continues where it ended, and a finished one has nothing left to do. Apart from the
// record, a ConfigMap, nothing keeps state.
//
// The migration never deletes or replaces a namespace, a copy or an object of the peer's that existed before, but for the
// ResourceQuotas by which the peer limits trees or tenants: the last step deletes them when Warren's are counted. It writes nothing
// but the record and the steps of phase rest before the peer is stopped, and nothing after a user has started the peer
// again. It replaces no label of Warren's. It never writes Warren's configuration, because each kind there needs rights
// and policies: the plan names what is missing.
//
// Why it works as it does:
//   - Until the last step, sources and copies are in mode create. In this mode the operator never changes or deletes a
//     copy, wherever its namespace is and whatever its source does. So neither an interruption nor the order of the
//     writes can lose a copy, and an undo only removes keys. Therefore each copy is written twice: its keys by the
//     caller, its content by the operator in the last step.
//   - Roots of HNC and Accurate are made by label, without LNamespaces: these peers have no users, managers and
//     sudoers, so a person must decide who they are.
//   - ownerReferences to the peer's objects are removed in the last step, not before: Capsule finds a Tenant's
//     namespaces by them, so an undo could not start Capsule again without them.
//   - A namespace's own ResourceQuotas, LimitRanges and NetworkPolicies stay where they are. A source in the root would
//     have the tenant's sudoers change all of them at once.
package migrate

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// Estate describes, in Warren's terms, what a peer's objects say.
type Estate struct {
	// Places are the namespaces that are in one of the peer's trees, that are its templates or that reference a template,
	// by name.
	Places map[string]Place
	// Sources are the objects for which the peer describes how they are copied. In kinds of mode All, Warren also copies
	// all other objects.
	Sources map[copies.Slot]Source
	// Copies are the objects that the peer has copied, with the namespace of each one's source.
	Copies map[copies.Slot]string
	// Tenants are the specs of the LNamespaces that the peer's tenants become, by name. Made are the sources that must
	// exist in their root namespaces, and are created if they don't.
	Tenants map[string]v1alpha1.LNamespaceSpec
	Made    map[copies.Slot]MadeSource
	// TreeQuotas are what namespaces and all below them may use together.
	TreeQuotas []treeQuota
	// KeptQuotas are those ResourceQuotas of the peer's that stay, because Warren does not limit the same.
	KeptQuotas map[Object]bool
	// Stop states why the migration can only be undone, and what to do; "" if it may go on.
	Stop string
	// IsGone reports that the API server has no definitions of the peer's any more: the migration can only be finished.
	IsGone bool
	// Owned are Namespaces and other objects that have an owner of API group OwnerGroup, the peer's. The garbage collector
	// deletes them with this owner, until the last step removes these ownerReferences.
	Owned      []*metav1.PartialObjectMetadata
	OwnerGroup string
	// Holding are objects of the peer's that may have its finalizers, which would keep their namespaces from being
	// deleted.
	Holding []*metav1.PartialObjectMetadata
	// peer is the operator whose objects the estate describes.
	peer peer
	// Gaps are settings of the peer that have no counterpart in Warren, or that need an administrator.
	Gaps []Gap
}

func newEmptyEstate() *Estate {
	return &Estate{
		Places: map[string]Place{}, Sources: map[copies.Slot]Source{}, Copies: map[copies.Slot]string{},
		Tenants: map[string]v1alpha1.LNamespaceSpec{}, Made: map[copies.Slot]MadeSource{}, KeptQuotas: map[Object]bool{},
	}
}

// Place states what a namespace becomes in Warren's trees.
type Place struct {
	// Type is root, template or "".
	Type string
	// Parent is the parent of a sub-namespace, else "". Template is the template that a namespace references, else "".
	Parent, Template string
	// Sub is the spec of the SubNamespace in the parent that owns the namespace; nil where the namespace is only placed
	// below the parent.
	Sub *v1alpha1.SubNamespaceSpec
	// Cascading, Labels and Annotations are settings for the namespace's HierarchyConfiguration: allowCascadingDeletion,
	// and the propagated keys.
	Cascading           bool
	Labels, Annotations []string
}

// namespaceLabels returns the labels that the Namespace gets.
func (p Place) namespaceLabels() map[string]string {
	wanted := map[string]string{v1alpha1.LabelType: p.Type, v1alpha1.LabelParent: p.Parent,
		v1alpha1.LabelTemplate: p.Template}
	if p.Sub != nil {
		wanted[v1alpha1.LabelBound] = v1alpha1.True
	}
	maps.DeleteFunc(wanted, func(_, value string) bool { return value == "" })
	return wanted
}

// Source states how an object is copied: Mode is the value of its label propagate, Select its selector of the
// namespaces below.
type Source struct{ Mode, Select string }

// Gap is something of the peer's that has no counterpart, and what to do instead.
type Gap struct {
	What    string `json:"what"`
	Instead string `json:"instead"`
}

func (e *Estate) addEstateGap(what, instead string) { e.Gaps = append(e.Gaps, Gap{what, instead}) }

// AllowedKeys states which labels and annotations of a SubNamespace the configuration allows.
type AllowedKeys struct{ Label, Annotation func(key string) bool }

// mostAnnotations is how many characters the annotations of a SubNamespace may have together, as its
// CustomResourceDefinition says.
const mostAnnotations = 8192

// subNamespaceSpecOf returns the spec of the SubNamespace that replaces owner, an object of the peer's that owns a
// namespace. A key that the configuration doesn't allow, or an annotation beyond mostAnnotations, is left out, and
// stays on the Namespace as it is.
func (e *Estate) subNamespaceSpecOf(kind string, owner metav1.Object, labels, annotations map[string]string,
	allowed AllowedKeys) *v1alpha1.SubNamespaceSpec {
	spec := &v1alpha1.SubNamespaceSpec{}
	missFor := func(what, key, reason string) {
		e.addEstateGap(fmt.Sprintf("%s %s of %s %s/%s", what, key, kind, owner.GetNamespace(), owner.GetName()),
			"if the Namespace has this key, its value stays; "+reason)
	}
	miss := func(what, key, field string) {
		missFor(what, key, "to set it by the SubNamespace, first add the key to "+field+" of the configuration")
	}
	room := mostAnnotations
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !allowed.Label(key) {
			miss("label", key, "subNamespaces.labels")
			continue
		}
		if spec.Labels == nil {
			spec.Labels = map[string]v1alpha1.LabelValue{}
		}
		spec.Labels[key] = v1alpha1.LabelValue(labels[key])
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !allowed.Annotation(key) {
			miss("annotation", key, "subNamespaces.annotations")
			continue
		}
		length := utf8.RuneCountInString(key) + utf8.RuneCountInString(annotations[key])
		if length > room {
			missFor("annotation", key, fmt.Sprintf("key and value have %d characters, and %d are left of the %d that all annotations "+
				"of a SubNamespace may have together: keep long texts in a ConfigMap", length, room, mostAnnotations))
			continue
		}
		room -= length
		if spec.Annotations == nil {
			spec.Annotations = map[string]v1alpha1.AnnotationValue{}
		}
		spec.Annotations[key] = v1alpha1.AnnotationValue(annotations[key])
	}
	return spec
}

// namespacesAbove returns the namespaces that are the parent or the template of another one.
func (e *Estate) namespacesAbove() map[string]bool {
	above := map[string]bool{}
	for _, place := range e.Places {
		above[place.Parent], above[place.Template] = true, true
	}
	return above
}

// Kind are the objects of a kind that Warren is configured to propagate.
type Kind struct {
	schema.GroupVersionKind
	Resource string
	Mode     copies.KindMode
	Objects  []*metav1.PartialObjectMetadata
}

func (k Kind) slotOfObject(object metav1.Object) copies.Slot {
	return copies.Slot{Kind: k.GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}
