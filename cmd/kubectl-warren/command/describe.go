package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
)

// description is what describe prints as JSON or YAML.
type description struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	*describe.Namespace
}

// describeCommand is the command "describe NS", which is also "ns describe NS".
func (p *plugin) describeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe NAMESPACE",
		Short: "Show what a namespace is in its tree: its place, what it inherits and holds, what is wrong",
		Long: "Show what a namespace is in its tree: its place, limits, what it inherits and from where, copies and sources, conditions and Events.\n" +
			"It needs no rights but those that the users of a tenant have there.",
		Example:           "  kubectl warren describe pay-web",
		Args:              exactlyAsUsage("one namespace"),
		ValidArgsFunction: p.completeFirst(1),
	}
	output := addChoice(cmd, "output", "o", "", "Output format", outputJSON, outputYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkNamespaces(args...); err != nil {
			return err
		}
		found, err := p.describeNamespace(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return p.printReport(output.value, found, description{reportVersion, "NamespaceDescription", found})
	}
	return cmd
}

func (p *plugin) describeNamespace(ctx context.Context, name string) (*describe.Namespace, error) {
	api, err := p.connect()
	if err != nil {
		return nil, err
	}
	view, err := gatherAround(ctx, api, name)
	if err != nil {
		return nil, err
	}
	tenant, known, err := tenantAbove(ctx, api, view, name)
	if err != nil {
		return nil, err
	}
	found := describe.Of(view, name, tenant, known)
	if found == nil {
		return nil, fmt.Errorf("there is no namespace %q", name)
	}
	if found.Resources, err = p.resourcesIn(ctx, name); err != nil {
		return nil, err
	}
	found.Events, err = p.eventsAbout(ctx, api, name, found.Parent)
	return found, err
}

// gatherAround is the whole forest, or what a user may read of it around the namespace called name.
func gatherAround(ctx context.Context, api client.Client, name string) (tree.View, error) {
	view, err := gatherForest(ctx, api)
	if failure.Refused(err) {
		return gatherSurroundings(ctx, api, name)
	}
	return view, err
}

// gatherSurroundings are what a user without cluster-wide rights may read of a namespace, of those above it, and of its children.
func gatherSurroundings(ctx context.Context, api client.Client, name string) (tree.View, error) {
	view := emptyView()
	view.Partial = true
	seen, err := step{name: name}.lookAtNamespace(ctx, api)
	if err != nil || seen.namespace == nil {
		return view, err
	}
	view.Forest = view.Forest.WithNamespace(seen.namespace)
	view.Conditions[name] = seen.conditions
	for _, child := range seen.next {
		if child.reported {
			view.Forest = view.Forest.WithNamespace(child.unreadNamespace())
		}
	}
	for at := seen.namespace.Parent(); at != "" && view.Forest.Namespace(at) == nil; {
		above, err := readNamespace(ctx, api, at)
		if failure.Unavailable(err) {
			break
		}
		if err != nil {
			return view, err
		}
		view.Forest = view.Forest.WithNamespace(forest.NamespaceOf(above))
		at = above.Labels[v1alpha1.LabelParent]
	}
	return view, nil
}

// tenantAbove reads the LNamespace of the tree in which a namespace stands: nil if there is none. known is false if that can't
// be told.
func tenantAbove(ctx context.Context, api client.Reader, view tree.View, name string) (tenant *v1alpha1.LNamespace, known bool, err error) {
	root := view.Forest.Namespace(describe.RootOf(view, name))
	if root == nil {
		return nil, false, nil
	}
	tenant, err = tenantOf(ctx, api, root.Name, root.TenantUID())
	if failure.Refused(err) {
		return nil, false, nil
	}
	return tenant, err == nil, err
}

// eventsAbout are what the operator told in Events: on the HierarchyConfiguration of a namespace, and on its SubNamespace in the
// parent. The newest come last.
func (p *plugin) eventsAbout(ctx context.Context, api client.Reader, name, parent string) ([]describe.Event, error) {
	events := []describe.Event{}
	for _, about := range []corev1.ObjectReference{
		{Namespace: name, Kind: "HierarchyConfiguration", Name: v1alpha1.HierarchyConfigurationName},
		{Namespace: parent, Kind: "SubNamespace", Name: name},
	} {
		if about.Namespace == "" {
			continue
		}
		err := eachOf(ctx, api, &corev1.EventList{}, func(object runtime.Object) {
			e := object.(*corev1.Event)
			events = append(events, describe.Event{
				Time: timeOf(e), Type: e.Type, Reason: e.Reason, Message: strings.TrimSpace(e.Message),
				Object: strings.ToLower(about.Kind) + "/" + about.Name,
			})
		}, client.InNamespace(about.Namespace), client.MatchingFields{"involvedObject.kind": about.Kind, "involvedObject.name": about.Name})
		if failure.Refused(err) {
			terminal.Fprintf(p.streams.ErrOut, "Warning: you may not list Events in %s: they are not shown\n", about.Namespace)
		} else if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("list Events: %w", err)
		}
	}
	slices.SortStableFunc(events, func(a, b describe.Event) int {
		return cmp.Or(a.Time.Compare(b.Time.Time), cmp.Compare(a.Reason, b.Reason))
	})
	return events, nil
}

// timeOf is when an Event was last seen.
func timeOf(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time{Time: e.EventTime.Time}
	}
	return e.CreationTimestamp
}
