package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// Accurate's API group and keys, as its documentation names them.
const (
	accurateGroup     = "accurate.cybozu.com"
	accurateType      = accurateGroup + "/type"
	accurateTemplate  = accurateGroup + "/template"
	accurateParent    = accurateGroup + "/parent"
	accurateFrom      = accurateGroup + "/from"
	accuratePropagate = accurateGroup + "/propagate"
	accurateGenerator = accurateGroup + "/propagate-generated"
)

// AccurateConfiguration is the content of Accurate's configuration file.
type AccurateConfiguration struct {
	LabelKeys                      []string              `json:"labelKeys"`
	AnnotationKeys                 []string              `json:"annotationKeys"`
	SubNamespaceLabelKeys          []string              `json:"subNamespaceLabelKeys"`
	SubNamespaceAnnotationKeys     []string              `json:"subNamespaceAnnotationKeys"`
	PropagateLabelKeyExcludes      []string              `json:"propagateLabelKeyExcludes"`
	PropagateAnnotationKeyExcludes []string              `json:"propagateAnnotationKeyExcludes"`
	Watches                        []accurateWatch       `json:"watches"`
	NamingPolicies                 []config.NamingPolicy `json:"namingPolicies"`
}

type accurateWatch struct{ Group, Version, Kind string }

// EstateOfAccurate returns the Estate that Accurate's labels, annotations and SubNamespaces describe. file is the
// content of Accurate's configuration file, or empty.
func EstateOfAccurate(subs []unstructured.Unstructured, file []byte, c Cluster,
	ours *config.OperatorConfiguration) (*Estate, error) {
	e := newEmptyEstate()
	owned := map[string]unstructured.Unstructured{}
	for _, sub := range subs {
		owned[sub.GetNamespace()+"/"+sub.GetName()] = sub
	}
	keys := AllowedKeys{ours.SubNamespaces.Labels.Match, ours.SubNamespaces.Annotations.Match}
	for _, name := range slices.Sorted(maps.Keys(c.Namespaces)) {
		e.placeOfAccurate(c.Namespaces[name], owned, keys)
	}
	theirs := AccurateConfiguration{}
	if err := yaml.UnmarshalStrict(file, &theirs); err != nil {
		return nil, fmt.Errorf("--peer-config is not the configuration file of Accurate, which has keys such as labelKeys: %w: save that file "+
			"by %s", err, printAccurateFile)
	}
	for _, kind := range c.Kinds {
		if kind.Mode == copies.All && !c.Peer.Record.isMigrationFinished() {
			e.compareModeAll(kind.GroupVersionKind, theirs.Watches)
		}
		for _, object := range kind.Objects {
			e.objectOfAccurate(kind, object)
		}
	}
	if len(file) == 0 && len(e.Places) > 0 && !c.Peer.Record.isMigrationFinished() {
		e.addEstateGap("configuration file of Accurate",
			"it is not compared with Warren's: add --peer-config FILE, with what this prints: "+printAccurateFile)
	}
	e.configurationOfAccurate(theirs, ours)
	return e, nil
}

// compareModeAll adds a gap for a kind in mode All, because Accurate copies only annotated objects of the kinds that it
// watches.
func (e *Estate) compareModeAll(kind schema.GroupVersionKind, watches []accurateWatch) {
	const advice = "propagation.kinds has the kind in mode All, so Warren would copy them all: set mode OptIn, or remove the kind"
	if slices.ContainsFunc(watches, func(w accurateWatch) bool { return w.Group == kind.Group && w.Kind == kind.Kind }) {
		e.addEstateGap("objects of "+kind.Kind+" without annotation", "Accurate copies only annotated ones, and "+advice)
		return
	}
	e.addEstateGap("objects of "+kind.Kind, "Accurate copies only annotated objects of the kinds that its configuration "+
		"watches, and "+advice)
}

// printAccurateFile is the command that prints Accurate's configuration file, as its manifests and its chart name it.
const printAccurateFile = `kubectl get configmap -n accurate accurate-config -o jsonpath='{.data.config\.yaml}'`

// placeOfAccurate adds the place of a namespace by its labels. If owned has a SubNamespace for it, the place gets one,
// too.
func (e *Estate) placeOfAccurate(n *metav1.PartialObjectMetadata, owned map[string]unstructured.Unstructured,
	allowed AllowedKeys) {
	place := Place{Type: n.Labels[accurateType], Parent: n.Labels[accurateParent], Template: n.Labels[accurateTemplate]}
	if place.Type == "" && place.Parent == "" && place.Template == "" {
		return
	}
	if place.Parent != "" {
		place.Type, place.Template = "", "" // neither acts on a sub-namespace
	}
	if sub, ok := owned[place.Parent+"/"+n.Name]; ok {
		place.Sub = e.subNamespaceSpecOf("SubNamespace", &sub, mapOf(sub, "labels"), mapOf(sub, "annotations"), allowed)
	}
	e.Places[n.Name] = place
}

func mapOf(object unstructured.Unstructured, field string) map[string]string {
	pairs, _, _ := unstructured.NestedStringMap(object.Object, "spec", field)
	return pairs
}

// objectOfAccurate records an object that is a source or a copy. Annotation from is read first: a copy also has its
// source's annotations.
func (e *Estate) objectOfAccurate(kind Kind, object *metav1.PartialObjectMetadata) {
	slot, notes := kind.slotOfObject(object), object.Annotations
	if notes[accurateGenerator] != "" {
		e.addEstateGap("annotation propagate-generated of "+slot.String(),
			"have the generator itself label the objects that it makes "+v1alpha1.LabelPropagate+"=update, as a Certificate does by "+
				"secretTemplate; or add the generator's kind to propagation.generators, and annotate the generator with "+
				v1alpha1.AnnotationPropagateGenerated)
	}
	mode := notes[accuratePropagate]
	_, placed := e.Places[object.Namespace]
	switch {
	case notes[accurateFrom] != "":
		e.Copies[slot] = notes[accurateFrom]
	case object.Labels[v1alpha1.LabelInheritedFrom] != "" || mode != v1alpha1.ModeCreate && mode != v1alpha1.ModeUpdate:
	case !placed:
		e.addEstateGap("annotation propagate of "+slot.String(), "it does nothing: namespace "+object.Namespace+
			" is in no tree and no template")
	default:
		e.Sources[slot] = Source{Mode: mode}
	}
}

// configurationOfAccurate adds a gap for each setting that Warren's configuration lacks.
func (e *Estate) configurationOfAccurate(theirs AccurateConfiguration, ours *config.OperatorConfiguration) {
	lists := []struct {
		name  string
		keys  []string
		field string
		have  config.Globs
	}{
		{"labelKeys", theirs.LabelKeys, "inheritance.labels", ours.Inheritance.Labels},
		{"annotationKeys", theirs.AnnotationKeys, "inheritance.annotations", ours.Inheritance.Annotations},
		{"subNamespaceLabelKeys", theirs.SubNamespaceLabelKeys, "subNamespaces.labels", ours.SubNamespaces.Labels},
		{"subNamespaceAnnotationKeys", theirs.SubNamespaceAnnotationKeys, "subNamespaces.annotations", ours.SubNamespaces.Annotations},
		{"propagateLabelKeyExcludes", theirs.PropagateLabelKeyExcludes, "propagation.excludedLabels", ours.Propagation.ExcludedLabels},
		{"propagateAnnotationKeyExcludes", theirs.PropagateAnnotationKeyExcludes, "propagation.excludedAnnotations",
			ours.Propagation.ExcludedAnnotations},
	}
	for _, list := range lists {
		for _, key := range list.keys {
			if !slices.Contains(list.have, key) && !list.have.Match(key) {
				e.addEstateGap(list.name+" "+key, "before the migration, add it to "+list.field+" of Warren's configuration")
			}
		}
	}
	for _, w := range theirs.Watches {
		if ours.Propagated(schema.GroupKind{Group: w.Group, Kind: w.Kind}) == nil {
			e.addEstateGap("watches "+strings.Trim(w.Kind+"."+w.Group, "."),
				"its copies stay, but Warren doesn't update them. Before the migration, add the kind to propagation.kinds, "+
					"and apply what `manager manifests --config FILE` prints")
		}
	}
	for _, policy := range theirs.NamingPolicies {
		if !slices.Contains(ours.SubNamespaces.NamingPolicies, policy) {
			e.addEstateGap("namingPolicies "+policy.Root, fmt.Sprintf("add it to subNamespaces.namingPolicies: {root: %q, match: %q}", policy.Root,
				policy.Match))
		}
	}
}
