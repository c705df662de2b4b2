package describe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/forest"
)

// served is what the API server has: a client for every kind, and the kinds that can have copies.
type served struct {
	client.Reader
	kinds []schema.GroupVersionKind
}

func readServed(inv *invocation.Invocation) (served, error) {
	api, err := inv.ConnectDiscovering()
	if err != nil {
		return served{}, err
	}
	kinds, err := inv.PropagableKinds()
	return served{api, kinds}, err
}

// resourcesIn returns the copies and sources in a namespace, and the kinds that the user may not list. It warns only
// about those of them that are propagated by default: of the others, most clusters propagate none.
func resourcesIn(ctx context.Context, inv *invocation.Invocation, api served, s *forest.Snapshot, namespace string) (all []Resource,
	unlisted []string, err error) {
	var mu sync.Mutex
	all = []Resource{}
	var missed []string // of the unlisted kinds, those that are propagated by default
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(gather.AtOnce)
	for _, kind := range api.kinds {
		group.Go(func() error {
			found, err := resourcesOf(ctx, api, s, kind, namespace)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
			switch {
			case failure.Refused(err):
				unlisted = append(unlisted, kind.GroupKind().String())
				if isDefaultKind(kind.GroupKind()) {
					missed = append(missed, kind.GroupKind().String())
				}
			case failure.Unlistable(err): // gone since discovery
			case err != nil:
				return fmt.Errorf("list %s in %s: %w", kind.GroupKind(), namespace, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	slices.Sort(unlisted)
	if len(missed) > 0 {
		slices.Sort(missed)
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: you may not list %s in %s: copies and sources of these kinds are not shown\n",
			strings.Join(missed, ", "), namespace)
	}
	slices.SortFunc(all, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all, unlisted, nil
}

func isDefaultKind(kind schema.GroupKind) bool {
	return slices.ContainsFunc(configfile.Default().Propagation.Kinds,
		func(k config.PropagatedKind) bool { return k.GroupKind() == kind })
}

// resourcesOf returns the copies and sources of one kind, selected by labels on the server.
func resourcesOf(ctx context.Context, api client.Reader, s *forest.Snapshot, kind schema.GroupVersionKind,
	namespace string) ([]Resource, error) {
	var found []Resource
	err := gather.ListMetadata(ctx, api, kind, func(m *metav1.PartialObjectMetadata) {
		if from, mode, ok := trace.Origin(kind.GroupKind(), m); ok {
			found = append(found, Resource{Kind: kind.GroupKind().String(), Name: m.Name, From: from, Mode: mode})
		}
	}, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelInheritedFrom})
	if err != nil {
		return nil, err
	}
	return found, gather.ListMetadata(ctx, api, kind, func(m *metav1.PartialObjectMetadata) {
		if m.Labels[v1alpha1.LabelInheritedFrom] == "" {
			found = append(found, Resource{
				Kind: kind.GroupKind().String(), Name: m.Name, Mode: m.Labels[v1alpha1.LabelPropagate],
				Problem: trace.WhyNotCopied(s, kind.GroupKind(), m),
			})
		}
	}, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelPropagate})
}
