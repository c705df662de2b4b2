package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/rules"
)

// document is what trace prints as JSON or YAML.
type document struct {
	invocation.Document
	*Trace
}

// Command is the command "trace KIND/NAME".
func Command(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace KIND/NAME",
		Short: "Show from where a copy came, along which path, in which mode; or why it is not here",
		Long: "Show from where a copy came, along which path, in which mode; or why it is not here, with what is in each namespace from\n" +
			"which it could come. The output marks what you may not read. If you may read the configuration in force,\n" +
			"it also reports that the kind is not configured.",
		Example:           "  kubectl warren trace secret/registry -n pay-web",
		Annotations:       map[string]string{invocation.UsesNamespace: "yes"},
		Args:              invocation.ExactlyAsUsage("one object"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	operator := invocation.AddOperatorNamespace(cmd)
	output := invocation.AddFormat(cmd, "Output format")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		resource, name, _ := strings.Cut(args[0], "/")
		if resource == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("invalid object %q: must be KIND/NAME, such as secret/registry", args[0])
		}
		found, err := traceObject(inv, cmd, resource, name, *operator)
		if err != nil {
			return err
		}
		return inv.PrintReport(output.Value, found, document{invocation.DocumentOf("Trace"), found})
	}
	return cmd
}

func traceObject(inv *invocation.Invocation, cmd *cobra.Command, resource, name, operator string) (*Trace, error) {
	ctx := cmd.Context()
	namespace, err := inv.NamespaceOf()
	if err != nil {
		return nil, err
	}
	if err := invocation.CheckNamespaces(namespace); err != nil {
		return nil, err
	}
	mapping, err := inv.FindMapping(resource)
	if err != nil {
		return nil, err
	}
	kind := mapping.GroupVersionKind
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace || !configfile.CanBePropagated(kind.GroupKind()) {
		return nil, fmt.Errorf("%s are never propagated", mapping.Resource.GroupResource())
	}
	api, err := inv.Connect()
	if err != nil {
		return nil, err
	}
	view, err := gather.Around(ctx, api, namespace)
	if err != nil {
		return nil, err
	}
	if view.Forest.Namespace(namespace) == nil {
		return nil, fmt.Errorf("there is no namespace %q", namespace)
	}
	c := Case{View: view, Slot: copies.Slot{Kind: kind.GroupKind(), Namespace: namespace, Name: name}}
	if err := c.readConfiguration(ctx, api, operator); err != nil {
		return nil, err
	}
	objects, err := inv.ConnectDiscovering()
	if err != nil {
		return nil, err
	}
	if err := readAbove(ctx, objects, kind, &c); err != nil {
		return nil, err
	}
	return Of(c), nil
}

// readConfiguration sets the kind's mode and the rules for copies as the configuration has them, if the user may read
// it.
func (c *Case) readConfiguration(ctx context.Context, api client.Reader, operator string) error {
	name, text, err := gather.ReadStoredConfig(ctx, api, operator)
	if failure.Unavailable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	parsed, err := configfile.Parse(name, []byte(text))
	if err != nil {
		return invocation.Problems(strings.Split(err.Error(), "\n"))
	}
	c.Configured, c.Rules = true, rules.ForCopies(parsed)
	if propagated := parsed.Propagated(c.Slot.Kind); propagated != nil {
		c.Mode = copies.KindMode(propagated.Mode)
	}
	return nil
}

// readAbove reads the object, and the objects of its name in the namespaces where its source can be.
func readAbove(ctx context.Context, api client.Reader, kind schema.GroupVersionKind, c *Case) error {
	here, err := readPlace(ctx, api, kind, c.Slot.Namespace, c.Slot.Name)
	switch {
	case err != nil:
		return err
	case here.Unread:
		return fmt.Errorf("you may not read %s in %s", kind.GroupKind(), c.Slot.Namespace)
	}
	c.Here, c.Type = here.Object, here.Type
	sources, _ := c.View.Forest.Sources(c.Slot.Namespace)
	names := slices.Clone(sources.Names)
	if c.Here != nil {
		if from, _, ok := Origin(kind.GroupKind(), c.Here); ok && !slices.Contains(names, from) {
			names = append([]string{from}, names...)
		}
	}
	for _, name := range names {
		place, err := readPlace(ctx, api, kind, name, c.Slot.Name)
		if err != nil {
			return err
		}
		c.Above = append(c.Above, place)
	}
	return nil
}

// readPlace reads the object of a namespace as metadata. A Secret is read whole, to know its type: the right to get it
// includes its content.
func readPlace(ctx context.Context, api client.Reader, kind schema.GroupVersionKind,
	namespace, name string) (Place, error) {
	place := Place{Namespace: namespace}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	key := client.ObjectKey{Namespace: namespace, Name: name}
	var err error
	if kind == corev1.SchemeGroupVersion.WithKind("Secret") {
		secret := &corev1.Secret{}
		err = api.Get(ctx, key, secret)
		object.ObjectMeta, place.Type = secret.ObjectMeta, string(secret.Type)
	} else {
		err = api.Get(ctx, key, object)
	}
	switch {
	case apierrors.IsNotFound(err):
		return Place{Namespace: namespace}, nil
	case failure.Refused(err):
		return Place{Namespace: namespace, Unread: true}, nil
	}
	place.Object = object
	return place, err
}
