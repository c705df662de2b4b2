package doctor

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// kindFound is what the cluster shows of a propagated kind whose mode is All or Remove, or that isn't served.
type kindFound struct {
	config.PropagatedKind
	unserved bool
	// copies is the number of copies that mode Remove deletes, kept the number of copies in mode create, which stay.
	copies, kept int
	// inConflict are the namespaces in which an object has the name of one above.
	inConflict []string
}

// checkKinds reports the progress of kinds in mode All or Remove.
func (p Patient) checkKinds(ctx context.Context, f file) Check {
	const name = "kinds"
	if f.unknown != nil {
		return warning(name, "the operator's configuration is not known: "+f.unknown.Error(), "ask as someone who may read the operator's namespace")
	}
	var found []kindFound
	for _, kind := range f.config.Propagation.Kinds {
		one, err := p.findKind(ctx, kind)
		if err != nil {
			return warning(name, fmt.Sprintf("nobody knows what is copied of kind %s: %v", kind.Kind, err), "ask a cluster admin to run this")
		}
		found = append(found, one)
	}
	return judgeKinds(found)
}

func (p Patient) findKind(ctx context.Context, kind config.PropagatedKind) (kindFound, error) {
	one := kindFound{PropagatedKind: kind}
	mapping, err := apianswer.MappingOf(p.Served, schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
	switch mode := propagate.KindMode(kind.Mode); {
	case meta.IsNoMatchError(err):
		one.unserved = true
	case err != nil:
		return one, err
	case mode == propagate.Remove:
		return one, p.countCopies(ctx, mapping.GroupVersionKind, &one)
	case mode == propagate.All:
		return one, p.findConflicts(ctx, &one)
	}
	return one, nil
}

// countCopies counts what is left of a kind in mode Remove.
func (p Patient) countCopies(ctx context.Context, kind schema.GroupVersionKind, one *kindFound) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return gather.Each(ctx, p.Copies, list, func(o client.Object) {
		switch propagate.ParseHash(o.GetAnnotations()[v1alpha1.AnnotationSourceHash]).Mode {
		case v1alpha1.ModeUpdate:
			one.copies++
		case v1alpha1.ModeCreate:
			one.kept++
		}
	}, client.HasLabels{v1alpha1.LabelInheritedFrom})
}

// findConflicts finds the namespaces whose HierarchyConfiguration reports a conflict of the kind.
func (p Patient) findConflicts(ctx context.Context, one *kindFound) error {
	return gather.Each(ctx, p.API, &v1alpha1.HierarchyConfigurationList{}, func(o client.Object) {
		propagated := v1alpha1.FindCondition(o.(*v1alpha1.HierarchyConfiguration).Status.Conditions, v1alpha1.ConditionPropagated)
		if propagated != nil && propagated.Reason == string(v1alpha1.ReasonConflict) && strings.Contains(propagated.Message, one.Kind+` "`) {
			one.inConflict = append(one.inConflict, o.GetNamespace())
		}
	})
}

// judgeKinds returns the check, with advice about the kinds' modes.
func judgeKinds(found []kindFound) Check {
	const name = "kinds"
	var unserved, removing, removed, clashing []string
	for _, one := range found {
		gk := schema.GroupKind{Group: one.Group, Kind: one.Kind}.String()
		switch {
		case one.unserved:
			unserved = append(unserved, gk)
		case propagate.KindMode(one.Mode) == propagate.Remove && one.copies > 0:
			removing = append(removing, fmt.Sprintf("%s (%d copies, and %d in mode create that stay)", gk, one.copies, one.kept))
		case propagate.KindMode(one.Mode) == propagate.Remove:
			removed = append(removed, gk)
		case len(one.inConflict) > 0:
			clashing = append(clashing, fmt.Sprintf("%s in %s", gk, forest.Few(one.inConflict)))
		}
	}
	var messages, advice []string
	say := func(kinds []string, message, next string) {
		if len(kinds) > 0 {
			messages, advice = append(messages, fmt.Sprintf(message, strings.Join(kinds, ", "))), append(advice, next)
		}
	}
	say(removing, "mode Remove takes away %s",
		"set another mode at once if that is not meant; while the operator runs, it takes seconds, and kubectl warren config diff FILE names each copy")
	say(clashing, "mode All: objects that are no copies have the names of objects above: %s",
		"rename or delete one of the two, or keep the one above where it is by label "+v1alpha1.LabelPropagate+"=none; kubectl warren describe NAMESPACE names them")
	say(unserved, "the API server doesn't serve %s, so nothing of it is copied", "install its CRD, or take the kind out of propagation.kinds")
	if len(messages) > 0 {
		return warning(name, strings.Join(messages, "; "), strings.Join(advice, "; "))
	}
	if len(removed) > 0 {
		return ok(name, fmt.Sprintf("mode Remove is done with %s: take it out of propagation.kinds", strings.Join(removed, ", ")))
	}
	return ok(name, "all propagated kinds are served, and no mode leaves anything to do")
}
