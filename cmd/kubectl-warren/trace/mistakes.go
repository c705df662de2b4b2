package trace

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// WhyNotCopied returns why the operator can't copy an object that asks for copies by its label: its namespace is in no
// tree, or its label or selector is invalid, or it has finalizers. It returns "" if copies are possible, or if the
// object asks for none.
func WhyNotCopied(s *forest.Snapshot, kind schema.GroupKind, meta *metav1.PartialObjectMetadata) string {
	slot := copies.Slot{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}
	source, ok := copies.Rules{}.SourceOf(slot, meta, copies.OptIn)
	switch {
	case !ok || source.Mode == v1alpha1.ModeNone:
		return ""
	case source.Invalid != "":
		return source.Invalid
	case source.Excluded != "":
		return "it is never propagated: " + source.Excluded
	}
	return outsideTrees(s, meta.Namespace)
}

// outsideTrees returns why nothing is copied from the namespace called name: it is protected, or is neither in a tree
// nor a template. It returns "" for all other namespaces.
func outsideTrees(s *forest.Snapshot, name string) string {
	if s.Protected(name) {
		return "namespace " + name + " is protected, and can be in no tree"
	}
	if kind := s.KindOf(s.Namespace(name)); kind == forest.None || kind == forest.Instance {
		return "namespace " + name + " is in no tree"
	}
	return ""
}

// WhyKindNotCopied returns why the configuration has nothing of a kind copied: propagation.kinds doesn't have it, or has
// it in mode Remove. It returns "" for all other kinds.
func WhyKindNotCopied(configuration *config.OperatorConfiguration, kind schema.GroupKind) string {
	c := Case{Slot: copies.Slot{Kind: kind}, Configured: true}
	if propagated := configuration.Propagated(kind); propagated != nil {
		c.Mode = copies.KindMode(propagated.Mode)
	}
	switch {
	case c.isUnlisted():
		return c.notListed()
	case c.removesCopies():
		return c.modeRemove()
	}
	return ""
}

// RequestedSource returns an object as the source that its label asks for, whatever the configuration says about its
// kind; nil if it asks for no copies, or is itself a copy.
func RequestedSource(kind schema.GroupKind, meta *metav1.PartialObjectMetadata) *copies.Source {
	slot := copies.Slot{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}
	source, ok := copies.Rules{}.SourceOf(slot, meta, copies.OptIn)
	if !ok || source.Mode == v1alpha1.ModeNone || meta.Labels[v1alpha1.LabelDistributedBy] != "" {
		return nil
	}
	return source
}

// asksForCopies reports whether an object has the label by which its author wants copies of it, with another value than
// none.
func asksForCopies(meta *metav1.PartialObjectMetadata) bool {
	value, labelled := meta.Labels[v1alpha1.LabelPropagate]
	return labelled && value != v1alpha1.ModeNone
}

// whyNoSource returns why an object is no source whatever value its label propagate has; "" if only that label decides.
func (c Case) whyNoSource(meta *metav1.PartialObjectMetadata) string {
	switch distribution := meta.Labels[v1alpha1.LabelDistributedBy]; {
	case distribution != "":
		return "it is a copy of ResourceDistribution " + distribution + ", and copies are never copied on"
	case c.removesCopies():
		return c.modeRemove()
	}
	return ""
}

// mistakenAnnotations returns a sentence for each annotation that has no effect, although the author of the object may
// have set it to propagate the object.
func mistakenAnnotations(meta *metav1.PartialObjectMetadata) []string {
	var notes []string
	for _, key := range slices.Sorted(maps.Keys(meta.Annotations)) {
		_, labelled := meta.Labels[v1alpha1.LabelPropagate]
		switch {
		case key == v1alpha1.LabelPropagate && !labelled:
			notes = append(notes, "its annotation "+key+" does nothing, because propagate is a label")
		case strings.HasSuffix(key, "/treeSelect"), strings.HasPrefix(key, "propagate.hnc.x-k8s.io/"), key == "accurate.cybozu.com/propagate":
			notes = append(notes, "its annotation "+key+" does nothing: use label "+v1alpha1.LabelPropagate+" and annotation "+
				v1alpha1.AnnotationSelect)
		}
	}
	return notes
}

// leftOut returns notes on what the source has and its copies never get: the labels and annotations that the
// configuration excludes, if this copy lacks any, and the fields that each object of this kind has for itself. Users of
// other operators expect them on copies.
func (c Case) leftOut(from string) []string {
	source := c.foundAbove(from).Object
	if source == nil {
		return nil
	}
	notes := excludedKeys("labels", "excludedLabels", source.Labels, c.Here.Labels, c.Rules.ExcludedLabel)
	notes = append(notes, excludedKeys("annotations", "excludedAnnotations", source.Annotations, c.Here.Annotations,
		c.Rules.ExcludedAnnotation)...)
	if fields := copies.OwnFields(c.Slot.Kind); fields != "" {
		notes = append(notes, "these fields of its source are never copied: "+fields)
	}
	return notes
}

// excludedKeys returns a note on the labels or annotations of a source that its copy lacks because the configuration
// excludes them. kubectl's own annotation is left out: everybody who applies a source has it there, and nobody misses
// it.
func excludedKeys(what, by string, source, here map[string]string, excluded func(key string) bool) []string {
	var missing []string
	for key := range source {
		_, there := here[key]
		if !there && excluded != nil && excluded(key) && !v1alpha1.IsReservedKey(key) &&
			key != corev1.LastAppliedConfigAnnotation {
			missing = append(missing, key)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{"these " + what + " of its source are never copied: " + forest.Few(missing) + " (propagation." + by +
		" of the configuration)"}
}
