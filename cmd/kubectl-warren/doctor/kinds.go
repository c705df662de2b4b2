package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/rules"
	"github.com/warren-tenancy/warren/internal/text"
)

// kindFound is what the cluster shows of a propagated kind. For a served kind in mode OptIn, doctor reads nothing.
type kindFound struct {
	config.PropagatedKind
	unserved bool
	// copies is the number of copies that mode Remove deletes, kept the number of copies in mode create, which stay.
	copies, kept int
	// troubles and leftOut are those of a kind in mode All.
	troubles troubles
	leftOut  leftOut
}

// checkKinds reports the progress of kinds in mode All or Remove.
func (p Patient) checkKinds(ctx context.Context, f file) Check {
	const name = "kinds"
	if f.unknown != nil {
		return warnOf(name, "the operator's configuration is not known: "+f.unknown.Error(), f.stepToKnow())
	}
	found, err := p.findKinds(ctx, f.config)
	if err != nil {
		return warnOf(name, err.Error(), stepAfter(err))
	}
	return judgeKinds(found)
}

// findKinds reads what the cluster shows of each propagated kind. It reads HierarchyConfigurations and Namespaces only
// if a kind is in mode All.
func (p Patient) findKinds(ctx context.Context, c *config.OperatorConfiguration) ([]kindFound, error) {
	var told map[string]troubles
	var above map[string]bool
	if slices.ContainsFunc(c.Propagation.Kinds, func(k config.PropagatedKind) bool { return copies.KindMode(k.Mode) == copies.All }) {
		var err error
		if told, err = p.readTroubles(ctx); err != nil {
			return nil, fmt.Errorf("reading the conditions of HierarchyConfigurations: %w", err)
		}
		if above, err = p.readUpperNamespaces(ctx); err != nil {
			return nil, fmt.Errorf("finding the namespaces that have others below them: %w", err)
		}
	}
	allowed := rules.ForCopies(c)
	var found []kindFound
	for _, kind := range c.Propagation.Kinds {
		one, err := p.findKind(ctx, kind, func(kind schema.GroupVersionKind, one *kindFound) error {
			one.troubles = told[kind.Kind]
			return p.findLeftOut(ctx, kind, allowed, above, &one.leftOut)
		})
		if err != nil {
			return nil, fmt.Errorf("finding the objects of kind %s that are copied: %w", kind.Kind, err)
		}
		found = append(found, one)
	}
	return found, nil
}

// findKind reads what the cluster shows of one kind. For a kind in mode All, it calls whole.
func (p Patient) findKind(ctx context.Context, kind config.PropagatedKind,
	whole func(schema.GroupVersionKind, *kindFound) error) (kindFound, error) {
	one := kindFound{PropagatedKind: kind}
	mapping, err := apianswer.MappingOf(p.Served,
		schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
	switch mode := copies.KindMode(kind.Mode); {
	case meta.IsNoMatchError(err):
		one.unserved = true
	case err != nil:
		return one, err
	case mode == copies.Remove:
		return one, p.countCopies(ctx, mapping.GroupVersionKind, &one)
	case mode == copies.All:
		return one, whole(mapping.GroupVersionKind, &one)
	}
	return one, nil
}

// countCopies counts the copies that are left of a kind in mode Remove.
func (p Patient) countCopies(ctx context.Context, kind schema.GroupVersionKind, one *kindFound) error {
	return gather.ListMetadata(ctx, p.Copies, kind, func(o *metav1.PartialObjectMetadata) {
		switch copies.ParseHash(o.GetAnnotations()[v1alpha1.AnnotationSourceHash]).Mode {
		case v1alpha1.ModeUpdate:
			one.copies++
		case v1alpha1.ModeCreate:
			one.kept++
		}
	}, client.HasLabels{v1alpha1.LabelInheritedFrom})
}

// judgeKinds returns the check, with advice about the kinds' modes.
func judgeKinds(found []kindFound) Check {
	const name = "kinds"
	var unserved, removing, removed, clashing, refused, limited, unsound []string
	var all leftOut
	for _, one := range found {
		gk := schema.GroupKind{Group: one.Group, Kind: one.Kind}.String()
		switch {
		case one.unserved:
			unserved = append(unserved, gk)
		case copies.KindMode(one.Mode) == copies.Remove && one.copies > 0:
			removing = append(removing, fmt.Sprintf("%s (%s, and %d in mode create that stay)", gk, text.Count(one.copies, "copy", "copies"),
				one.kept))
		case copies.KindMode(one.Mode) == copies.Remove:
			removed = append(removed, gk)
		default:
			clashing = one.troubles.nameIn(clashing, gk, v1alpha1.ReasonConflict)
			refused = one.troubles.nameIn(refused, gk, v1alpha1.ReasonRejected)
			limited = one.troubles.nameIn(limited, gk, v1alpha1.ReasonLimitExceeded)
			unsound = append(unsound, one.leftOut[unsoundSource]...)
			all.addObjects(one.leftOut)
		}
	}
	var messages, advice []string
	say := func(about []string, list, message, next string) {
		if len(about) > 0 {
			messages, advice = append(messages, fmt.Sprintf(message, list)), append(advice, next)
		}
	}
	say(removing, strings.Join(removing, ", "), "mode Remove deletes the copies of %s",
		"if this is not what you want, set another mode at once: the operator deletes the copies within seconds; kubectl warren config diff "+
			"FILE -o wide names each copy")
	say(clashing, strings.Join(clashing, ", "), "mode All: copies of %s are not written, because other objects have their names",
		"rename or delete the other object or the source, or exclude the source by label "+v1alpha1.LabelPropagate+
			"=none; kubectl warren describe NAMESPACE names them")
	say(refused, strings.Join(refused, ", "), "mode All: copies of %s are refused",
		"kubectl warren describe NAMESPACE has the reasons: raise the quota, change the policy, propagate the Role, or exclude the sources by "+
			"label "+v1alpha1.LabelPropagate+"=none")
	say(limited, strings.Join(limited, ", "), "mode All: limits of tenants hold back copies of %s",
		"raise limits.copies or limits.bytes of the LNamespace, or exclude sources by label "+v1alpha1.LabelPropagate+
			"=none; kubectl warren describe NAMESPACE names them")
	say(unsound, forest.Few(unsound), "mode All: copies of objects with an invalid label "+v1alpha1.LabelPropagate+" or annotation "+
		v1alpha1.AnnotationSelect+" are neither written nor deleted: %s",
		"correct the invalid key: an Event InvalidSource on the object names it and has the cause")
	say(unserved, strings.Join(unserved, ", "), "the API server doesn't serve %s, so nothing of it is copied",
		"install its CRD, or take the kind out of propagation.kinds")
	if len(messages) > 0 {
		return warnOf(name, strings.Join(append(messages, all.describeExclusions()...), "; "), strings.Join(advice, "; "))
	}
	message := "all propagated kinds are served, and their modes need no action from you"
	if len(removed) > 0 {
		message = fmt.Sprintf("mode Remove has deleted all copies of %[1]s: take %[1]s out of propagation.kinds",
			strings.Join(removed, ", "))
	}
	return passOf(name, strings.Join(append([]string{message}, all.describeExclusions()...), "; "))
}
