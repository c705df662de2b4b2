package describe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/quota"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/text"
)

// document is what describe prints as JSON or YAML.
type document struct {
	invocation.Document
	*Namespace
}

// Command is the command "describe NS".
func Command(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use: "describe [NAMESPACE]", SuggestFor: []string{"namespace"},
		Short: "Show what a namespace is in its tree: its place, what it inherits and holds, what is wrong",
		Long: "Show what a namespace is in its tree: its place, limits, what it inherits and from where, copies and sources, conditions and " +
			"Events. Without a name, it is the namespace of the kubeconfig's context.\n" +
			"It needs no rights but those that the users of a tenant have there. The last line names kinds that you may not list, and instances\n" +
			"of a template are shown only to those who may list namespaces. Of a kind in mode All, only sources with a label are shown.\n" +
			"If you may read the configuration in force, sources that aren't copied because of their kind are marked, also those above.\n" +
			"The limits are those of the tenant's LNamespace, <unknown> if you may not read it, and <none> for a namespace in no tree.",
		Example:           "  kubectl warren describe pay-web",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: inv.CompleteFirst(1),
	}
	output := invocation.AddChoice(cmd, "output", "o", "", "Output format", invocation.OutputJSON, invocation.OutputYAML,
		invocation.OutputName)
	operator := invocation.AddOperatorNamespace(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := nameOf(cmd, inv, args)
		if err != nil {
			return err
		}
		found, err := Read(cmd.Context(), inv, name, *operator)
		if err != nil {
			return err
		}
		if output.Value == invocation.OutputName {
			_, err = terminal.Fprintf(inv.Streams.Out, "namespace/%s\n", found.Name)
			return err
		}
		return inv.PrintReport(output.Value, found, document{invocation.DocumentOf("NamespaceDescription"), found})
	}
	return cmd
}

// nameOf returns the namespace that is to be described.
func nameOf(cmd *cobra.Command, inv *invocation.Invocation, args []string) (name string, err error) {
	if len(args) == 1 {
		return args[0], invocation.CheckNamespaces(args[0])
	}
	name, err = inv.NamespaceOf()
	if len(args) > 1 || errors.Is(err, invocation.ErrNoNamespace) {
		return "", fmt.Errorf("name one namespace, not %d: %s NAMESPACE", len(args), cmd.CommandPath())
	}
	return name, err
}

// Read describes the namespace called name; its error is NotFound if there is none. Warnings on ErrOut name what the
// user may not read. operator is the namespace of the operator, whose configuration Read needs to find the sources that
// addUncopied adds; for "", it doesn't look for them.
func Read(ctx context.Context, inv *invocation.Invocation, name, operator string) (*Namespace, error) {
	api, err := inv.Connect()
	if err != nil {
		return nil, err
	}
	view, err := gather.Around(ctx, api, name)
	if unseen := gather.UnseenError(""); errors.As(err, &unseen) {
		return describeManaged(ctx, inv, api, unseen)
	}
	if err != nil {
		return nil, err
	}
	tenant, known, err := tenantAbove(ctx, api, view, name)
	if err != nil {
		return nil, err
	}
	found := Of(view, name, tenant, known)
	if found == nil {
		missing := metav1.Status{Reason: metav1.StatusReasonNotFound, Message: fmt.Sprintf("there is no namespace %q", name)}
		return nil, &apierrors.StatusError{ErrStatus: missing}
	}
	if found.Phase == tree.PhaseTerminating {
		if err := found.addTermination(ctx, api); err != nil {
			return nil, err
		}
	}
	objects, err := readServed(inv)
	if err != nil {
		return nil, err
	}
	if found.Resources, found.Unlisted, err = resourcesIn(ctx, inv, objects, view.Forest, name); err != nil {
		return nil, err
	}
	if found.Share, err = quota.FindShare(ctx, api, name); err != nil {
		return nil, err
	}
	if operator != "" && !view.Partial { // a user of a tenant may not read the configuration
		c, err := readConfiguration(ctx, api, operator)
		if err != nil {
			terminal.Fprintf(inv.Streams.ErrOut, "Warning: the operator's configuration is not known, so sources that are not copied because "+
				"of their kind are not marked: %v\n", err)
		}
		if err := found.addUncopied(ctx, objects, view.Forest, c); err != nil {
			return nil, err
		}
	}
	found.Events, found.EventsLeftOut, err = eventsAbout(ctx, inv, api, found)
	return found, err
}

// describeManaged describes the root of a tenant by its LNamespace alone, which a manager may read. If the user may not
// read that either, the error is unseen.
func describeManaged(ctx context.Context, inv *invocation.Invocation, api client.Client,
	unseen gather.UnseenError) (*Namespace, error) {
	tenant := &v1alpha1.LNamespace{}
	if err := api.Get(ctx, client.ObjectKey{Name: string(unseen)}, tenant); failure.Unavailable(err) {
		return nil, unseen
	} else if err != nil {
		return nil, fmt.Errorf("read LNamespace %s: %w", string(unseen), err)
	}
	terminal.Fprintf(inv.Streams.ErrOut, "Warning: you may not read namespace %s: only what its LNamespace says is shown\n",
		string(unseen))
	view := gather.EmptyView()
	view.Partial = true
	view.Forest = view.Forest.WithNamespace(&forest.Namespace{Name: tenant.Name, Labels: map[string]string{
		v1alpha1.LabelType: v1alpha1.TypeRoot,
	}})
	return Of(view, tenant.Name, tenant, true), nil
}

// addTermination adds the conditions by which a terminating Namespace itself reports what keeps it from ending.
func (d *Namespace) addTermination(ctx context.Context, api client.Reader) error {
	namespace := &corev1.Namespace{}
	err := api.Get(ctx, client.ObjectKey{Name: d.Name}, namespace)
	if err != nil && !failure.Unavailable(err) {
		return fmt.Errorf("read namespace %s: %w", d.Name, err)
	}
	for _, c := range namespace.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			d.Conditions = append(d.Conditions, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionTrue, Reason: c.Reason,
				Message: c.Message, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return nil
}

// tenantAbove reads the LNamespace of a namespace's tree; nil if there is none. known is false if the tree's root is
// not in view, or the user may not read the LNamespace.
func tenantAbove(ctx context.Context, api client.Reader, view tree.View,
	name string) (tenant *v1alpha1.LNamespace, known bool, err error) {
	root := view.Forest.Namespace(RootOf(view, name))
	if root == nil {
		return nil, false, nil
	}
	tenant, err = gather.ReadTenant(ctx, api, root.Name, root.TenantUID())
	if failure.Refused(err) {
		return nil, false, nil
	}
	return tenant, err == nil, err
}

// eventsAbout returns the Events on a namespace's HierarchyConfiguration and on its SubNamespace in the parent, and the
// operator's Events on its copies and sources. The newest is last. leftOut is the number of older Events that it leaves
// out.
func eventsAbout(ctx context.Context, inv *invocation.Invocation, api client.Reader,
	described *Namespace) (newest []Event, leftOut int, err error) {
	events := []Event{}
	for _, list := range []struct {
		namespace string
		fields    client.MatchingFields
		concerns  func(object corev1.ObjectReference) bool
	}{
		{described.Name, eventsOn("HierarchyConfiguration", v1alpha1.HierarchyConfigurationName), nil},
		{described.Name, client.MatchingFields{"source": v1alpha1.OperatorName}, described.hasResource},
		{described.Parent, eventsOn("SubNamespace", described.Name), nil},
	} {
		if list.namespace == "" {
			continue
		}
		err := gather.ListEach(ctx, api, &corev1.EventList{}, func(object client.Object) {
			e := object.(*corev1.Event)
			if list.concerns == nil || list.concerns(e.InvolvedObject) {
				events = append(events, EventOf(e))
			}
		}, client.InNamespace(list.namespace), list.fields, EventPage)
		if failure.Refused(err) {
			terminal.Fprintf(inv.Streams.ErrOut, "Warning: you may not list Events in %s: they are not shown\n", list.namespace)
		} else if err != nil && !apierrors.IsNotFound(err) {
			return nil, 0, fmt.Errorf("list Events: %w", err)
		}
	}
	newest, leftOut = Newest(events)
	return newest, leftOut, nil
}

// maxEvents, and maxMessage in bytes, bound what is kept of Events: whoever may create Events in a namespace decides
// about their number and length.
const (
	maxEvents  = 100
	maxMessage = 1024
)

// EventPage is how many Events are read at once: each may have more than a megabyte.
const EventPage = client.Limit(50)

// Newest returns the newest 100 of the Events, in their order in time, and how many others there were.
func Newest(events []Event) (newest []Event, leftOut int) {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(a.Time.Compare(b.Time.Time), cmp.Compare(a.Reason, b.Reason))
	})
	leftOut = max(0, len(events)-maxEvents)
	return events[leftOut:], leftOut
}

// EventOf returns an Event as a description shows it: of each text at most 1 KiB.
func EventOf(e *corev1.Event) Event {
	message := strings.Clone(text.Cut(strings.TrimSpace(e.Message), maxMessage)) // otherwise the long text would stay in memory
	return Event{
		Time: timeOf(e), Type: text.Cut(e.Type, maxMessage), Reason: text.Cut(e.Reason, maxMessage), Message: message,
		Object: text.Cut(strings.ToLower(e.InvolvedObject.Kind)+"/"+e.InvolvedObject.Name, maxMessage),
	}
}

func eventsOn(kind, name string) client.MatchingFields {
	return client.MatchingFields{"involvedObject.kind": kind, "involvedObject.name": name}
}

// hasResource reports whether an object is one of the copies and sources in the namespace.
func (d *Namespace) hasResource(object corev1.ObjectReference) bool {
	kind := object.GroupVersionKind().GroupKind().String()
	return slices.ContainsFunc(d.Resources, func(r Resource) bool { return r.Kind == kind && r.Name == object.Name })
}

// timeOf returns when an Event was last seen.
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
