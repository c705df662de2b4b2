package doctor

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/text"
)

// exclusion is why an object of a kind in mode All isn't copied, or not to every namespace below.
type exclusion int

// The intended exclusions, in the order in which describe names them; and unsoundSource, which is a mistake.
const (
	byLabel exclusion = iota
	byFinalizers
	byConfiguration
	bySelector
	unsoundSource // a key of the object isn't valid
)

// leftOutTexts describe what is left out; %s is the number of objects, such as "3 objects".
var leftOutTexts = map[exclusion]string{
	byLabel:         "mode All leaves out %s with label " + v1alpha1.LabelPropagate + "=" + v1alpha1.ModeNone,
	byFinalizers:    "mode All leaves out %s with finalizers",
	byConfiguration: "mode All leaves out %s that propagation.neverPropagate names",
	bySelector:      "mode All copies %s only to namespaces that annotation " + v1alpha1.AnnotationSelect + " selects",
}

// leftOut are the objects that mode All leaves out, as "KIND NAMESPACE/NAME", by exclusion.
type leftOut map[exclusion][]string

func (l *leftOut) addObjects(more leftOut) {
	if *l == nil {
		*l = leftOut{}
	}
	for why, names := range more {
		(*l)[why] = append((*l)[why], names...)
	}
}

// describeExclusions returns a sentence about each exclusion except unsoundSource.
func (l leftOut) describeExclusions() []string {
	var sentences []string
	for why := range unsoundSource {
		if names := l[why]; len(names) > 0 {
			sentences = append(sentences, fmt.Sprintf("%s: %s", fmt.Sprintf(leftOutTexts[why], text.Count(len(names), "object", "objects")),
				forest.Few(names)))
		}
	}
	return sentences
}

// readUpperNamespaces returns the namespaces that are a parent or a template of others: objects are copied only from
// these.
func (p Patient) readUpperNamespaces(ctx context.Context) (map[string]bool, error) {
	above := map[string]bool{}
	err := gather.ListEach(ctx, p.API, newNamespaceList(), func(o client.Object) {
		for _, key := range []string{v1alpha1.LabelParent, v1alpha1.LabelTemplate} {
			if name := o.GetLabels()[key]; name != "" {
				above[name] = true
			}
		}
	})
	return above, err
}

// findLeftOut adds to found the objects of a kind that mode All leaves out. It reads only metadata, so it doesn't find
// Secrets that are left out because of their type. It does not report what a platform writes into every namespace by
// itself.
func (p Patient) findLeftOut(ctx context.Context, kind schema.GroupVersionKind, rules copies.Rules, above map[string]bool,
	found *leftOut) error {
	original, err := labels.NewRequirement(v1alpha1.LabelInheritedFrom, selection.DoesNotExist, nil)
	if err != nil {
		return err
	}
	return gather.ListMetadata(ctx, p.Copies, kind, func(o *metav1.PartialObjectMetadata) {
		if !above[o.GetNamespace()] {
			return
		}
		slot := copies.Slot{Kind: kind.GroupKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
		if source, isSource := rules.SourceOf(slot, o, copies.All); isSource {
			if why, out := excludedBy(source, o); out {
				found.addObjects(leftOut{why: {fmt.Sprintf("%s %s/%s", kind.Kind, o.GetNamespace(), o.GetName())}})
			}
		}
	}, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*original)})
}

// excludedBy reports whether and why a source isn't copied to every namespace below it. For an object that a platform
// writes into every namespace, out is false.
func excludedBy(source *copies.Source, object client.Object) (why exclusion, out bool) {
	switch {
	case source.Invalid != "":
		return unsoundSource, true
	case source.Mode == v1alpha1.ModeNone:
		return byLabel, true
	case len(object.GetFinalizers()) > 0:
		return byFinalizers, true
	case source.Excluded != "":
		return byConfiguration, source.Excluded == copies.ByConfiguration
	}
	return bySelector, source.Selector != nil
}
