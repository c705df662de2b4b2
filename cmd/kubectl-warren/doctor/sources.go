package doctor

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// checkSources looks for objects that have the label propagate, but that the operator can't copy. It looks at every kind
// that could be configured.
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
	others, err := p.findUncopied(ctx, f.config)
	if err != nil {
		return warnOf(name, "the sources of kinds that propagation.kinds doesn't have can't be found: "+err.Error(), stepAfter(err))
	}
	return judgeSources(unsound, others)
}

// uncopied is what the cluster shows of the kinds that the configuration doesn't have, or has in mode Remove.
type uncopied struct {
	// objects are those with the label propagate, as KIND NAMESPACE/NAME; kinds are their kinds.
	objects, kinds []string
	// unlisted are the kinds that the user may not list.
	unlisted []string
}

// judgeSources returns the check. unsound are the sources of configured kinds that can't be copied.
func judgeSources(unsound []string, others uncopied) Check {
	const name = "sources"
	var messages, advice []string
	say := func(about []string, message, next string) {
		if len(about) > 0 {
			messages, advice = append(messages, message+forest.Few(about)), append(advice, next)
		}
	}
	say(unsound, "these objects have the label propagate, but the operator can't copy them: ",
		"kubectl warren trace KIND/NAME -n NAMESPACE says why: place the namespace in a tree, mend the selector, or take the finalizers or "+
			"the label off")
	say(others.objects, "these objects have the label propagate, but the operator copies no objects of their kinds: ",
		"add "+forest.Few(others.kinds)+" to propagation.kinds, in a mode other than Remove (make deploy CONFIG=FILE), or take the label off")
	say(others.unlisted, "objects with the label propagate are not shown, because you may not list ", "ask a cluster admin to run this")
	if len(messages) == 0 {
		return passOf(name, "the operator can copy every object that has the label propagate")
	}
	return warnOf(name, strings.Join(messages, "; "), strings.Join(advice, "; "))
}

// findUncopied reads what the cluster shows of the kinds that the configuration doesn't have, or has in mode Remove.
func (p Patient) findUncopied(ctx context.Context, c *config.OperatorConfiguration) (uncopied, error) {
	var mu sync.Mutex
	var all uncopied
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(gather.AtOnce)
	for _, kind := range p.Propagable {
		if trace.WhyKindNotCopied(c, kind.GroupKind()) == "" {
			continue
		}
		group.Go(func() error {
			objects, err := p.findRequested(ctx, kind)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case failure.Refused(err):
				all.unlisted = append(all.unlisted, kind.GroupKind().String())
				return nil
			case failure.Unlistable(err): // gone since discovery
				return nil
			case len(objects) > 0:
				all.objects, all.kinds = append(all.objects, objects...), append(all.kinds, kind.GroupKind().String())
			}
			return err
		})
	}
	return all, group.Wait()
}

// findRequested returns the objects of a kind whose label asks for copies.
func (p Patient) findRequested(ctx context.Context, kind schema.GroupVersionKind) ([]string, error) {
	return p.findLabelled(ctx, kind, func(meta *metav1.PartialObjectMetadata) bool {
		return trace.RequestedSource(kind.GroupKind(), meta) != nil
	})
}

// findLabelled returns those objects of a kind with the label propagate that are meant, as KIND NAMESPACE/NAME.
func (p Patient) findLabelled(ctx context.Context, kind schema.GroupVersionKind, isMeant func(*metav1.PartialObjectMetadata) bool) (
	objects []string, err error) {
	err = gather.ListMetadata(ctx, p.Copies, kind, func(o *metav1.PartialObjectMetadata) {
		if isMeant(o) {
			objects = append(objects, kind.Kind+" "+o.Namespace+"/"+o.Name)
		}
	}, client.HasLabels{v1alpha1.LabelPropagate})
	return objects, err
}

// findUnsound returns the objects of a kind that have the label propagate, but that the operator can't copy.
func (p Patient) findUnsound(ctx context.Context, s *forest.Snapshot, kind schema.GroupVersionKind) ([]string, error) {
	mapping, err := apianswer.MappingOf(p.Served, kind)
	if meta.IsNoMatchError(err) {
		return nil, nil // check kinds reports it
	}
	if err != nil {
		return nil, err
	}
	return p.findLabelled(ctx, mapping.GroupVersionKind, func(object *metav1.PartialObjectMetadata) bool {
		return trace.WhyNotCopied(s, kind.GroupKind(), object) != ""
	})
}
