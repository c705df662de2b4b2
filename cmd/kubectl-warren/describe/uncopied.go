package describe

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/forest"
)

// addUncopied marks the sources in the namespace that aren't copied, because the configuration doesn't have their kind,
// or has it in mode Remove. It adds such sources above, templates included, of which the namespace would get copies
// otherwise. It does nothing if the configuration is not known.
func (d *Namespace) addUncopied(ctx context.Context, api served, s *forest.Snapshot, c *config.OperatorConfiguration) error {
	if c == nil {
		return nil
	}
	for i, r := range d.Resources {
		if why := trace.WhyKindNotCopied(c, schema.ParseGroupKind(r.Kind)); why != "" && r.From == "" && r.Mode != v1alpha1.ModeNone {
			d.Resources[i].Problem = why
		}
	}
	above, _ := s.Sources(d.Name)
	found := make([][]Resource, len(api.kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(gather.AtOnce)
	for i, kind := range api.kinds {
		if why := trace.WhyKindNotCopied(c, kind.GroupKind()); why != "" {
			group.Go(func() (err error) {
				found[i], err = uncopiedFrom(ctx, api, above.Names, kind, s.SelectableLabels(d.Name), why)
				return err
			})
		}
	}
	err := group.Wait()
	d.Resources = append(d.Resources, slices.Concat(found...)...)
	return err
}

// readConfiguration returns the configuration in force; nil if the user may not read it.
func readConfiguration(ctx context.Context, api client.Reader, operator string) (*config.OperatorConfiguration, error) {
	name, text, err := gather.ReadStoredConfig(ctx, api, operator)
	if failure.Unavailable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return configfile.Parse(name, []byte(text))
}

// uncopiedFrom returns the sources of one kind in the namespaces above that select a namespace with these labels. It
// leaves out what the user may not list.
func uncopiedFrom(ctx context.Context, api client.Reader, above []string, kind schema.GroupVersionKind, here map[string]string,
	why string) ([]Resource, error) {
	var found []Resource
	for _, namespace := range above {
		err := gather.ListMetadata(ctx, api, kind, func(m *metav1.PartialObjectMetadata) {
			source := trace.RequestedSource(kind.GroupKind(), m)
			if source != nil && (source.Selector == nil || source.Selector.Matches(labels.Set(here))) {
				found = append(found, Resource{Kind: kind.GroupKind().String(), Name: m.Name, From: namespace, Mode: source.Mode, Problem: why})
			}
		}, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelPropagate})
		if err != nil && !failure.Unlistable(err) {
			return nil, fmt.Errorf("list %s in %s: %w", kind.GroupKind(), namespace, err)
		}
	}
	return found, nil
}
