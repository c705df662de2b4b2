package doctor

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// checkSources looks for objects of the configured kinds that have the label propagate, but that the operator can't
// copy.
func (p Patient) checkSources(ctx context.Context, f file) Check {
	const name = "sources"
	if f.unknown != nil {
		return warnOf(name, "the operator's configuration is not known: "+f.unknown.Error(), f.stepToKnow())
	}
	view, err := gather.Forest(ctx, p.API)
	if err != nil {
		return warnOf(name, err.Error(), stepAfter(err))
	}
	var unsound []string
	for _, kind := range f.config.Propagation.Kinds {
		found, err := p.findUnsound(ctx, view.Forest,
			schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
		if err != nil {
			return warnOf(name, fmt.Sprintf("the sources of kind %s can't be found: %v", kind.Kind, err), stepAfter(err))
		}
		unsound = append(unsound, found...)
	}
	if len(unsound) == 0 {
		return passOf(name, "the operator can copy every object that has the label propagate")
	}
	return warnOf(name, "these objects have the label propagate, but the operator can't copy them: "+forest.Few(unsound),
		"kubectl warren trace KIND/NAME -n NAMESPACE says why: place the namespace in a tree, mend the selector, or take the finalizers or "+
			"the label off")
}

// findUnsound returns the objects of a kind, as KIND NAMESPACE/NAME, that have the label propagate, but that the
// operator can't copy.
func (p Patient) findUnsound(ctx context.Context, s *forest.Snapshot, kind schema.GroupVersionKind) ([]string, error) {
	mapping, err := apianswer.MappingOf(p.Served, kind)
	if meta.IsNoMatchError(err) {
		return nil, nil // check kinds reports it
	}
	if err != nil {
		return nil, err
	}
	var unsound []string
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	err = gather.ListEach(ctx, p.Copies, list, func(o client.Object) {
		if trace.WhyNotCopied(s, kind.GroupKind(), o.(*metav1.PartialObjectMetadata)) != "" {
			unsound = append(unsound, kind.Kind+" "+o.GetNamespace()+"/"+o.GetName())
		}
	}, client.HasLabels{v1alpha1.LabelPropagate})
	return unsound, err
}
