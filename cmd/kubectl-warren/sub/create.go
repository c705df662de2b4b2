package sub

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/ownrights"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// newChild has the values of the flags of create.
type newChild struct {
	labels, annotations map[string]string
	wait                bool
	change              change.Options
}

func (n *newChild) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar(&n.labels, "labels", nil,
		"Labels of the namespace; only keys that subNamespaces.labels of the configuration allows, by default none")
	cmd.Flags().StringToStringVar(&n.annotations, "annotations", nil,
		"Annotations of the namespace; only keys that subNamespaces.annotations of the configuration allows, by default none")
	cmd.Flags().BoolVar(&n.wait, "wait", false, "Return when the namespace is ready to be used, or fail if only a human can help")
	n.change = change.AddFlags(cmd)
}

// createCommand is the command "create NAME -n PARENT".
func createCommand(inv *invocation.Invocation) *cobra.Command {
	n := &newChild{}
	cmd := &cobra.Command{
		Use:   "create NAME -n PARENT",
		Short: "Create a sub-namespace of the namespace that --namespace names",
		Long: "Create a sub-namespace of the namespace that --namespace or else the kubeconfig's context names, by a SubNamespace. You need\n" +
			"ClusterRole admin there.",
		Example:           "  kubectl warren create pay-web -n payments --wait",
		Annotations:       map[string]string{invocation.UsesNamespace: "yes"},
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	n.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		parent, err := inv.NamespaceOf()
		switch {
		case len(args) != 1, errors.Is(err, invocation.ErrNoNamespace):
			return fmt.Errorf("name one sub-namespace, and its parent with --namespace: %s NAME -n PARENT", cmd.CommandPath())
		case err != nil:
			return err
		}
		return createSub(cmd.Context(), inv, parent, args[0], n)
	}
	return cmd
}

func createSub(ctx context.Context, inv *invocation.Invocation, parent, name string, n *newChild) error {
	if err := invocation.CheckNamespaces(name, parent); err != nil {
		return err
	}
	sub := New(parent, name, n.buildSpec())
	if n.change.IsRehearsed() {
		written, err := change.ManifestOf(sub)
		if err != nil {
			return err
		}
		return change.PrintDone(inv, written, n.change, "created")
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	if err := checkNameFree(ctx, api, parent, name); err != nil {
		return err
	}
	if err := n.change.ClientFor(api).Create(ctx, sub); err != nil {
		return explainCreation(ctx, api, err, parent)
	}
	if n.wait && n.change.IsStored() {
		if sub, err = awaitReady(ctx, api, sub); err != nil {
			return err
		}
	}
	sub.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("SubNamespace"))
	return change.PrintDone(inv, sub, n.change, "created")
}

// checkNameFree returns an error if another namespace has the name of the sub-namespace. A namespace that is bound to
// parent is the one that the new SubNamespace takes over: its SubNamespace is missing, for example after the restore of
// a backup. If the user may not read the namespace, the error comes later, from the SubNamespace.
func checkNameFree(ctx context.Context, api client.Reader, parent, name string) error {
	namespace, err := gather.ReadNamespace(ctx, api, name)
	if err == nil && isBoundTo(namespace, parent) {
		var sub *v1alpha1.SubNamespace
		if sub, err = gather.ReadSubNamespace(ctx, api, parent, name); sub == nil && err == nil {
			return nil
		}
	}
	switch {
	case err == nil:
		return fmt.Errorf("namespace %s already exists: choose another name", name)
	case failure.Unavailable(err):
		return nil
	}
	return err
}

// explainCreation adds advice to RBAC's refusal to create in parent. RBAC refuses in the same words whether that
// namespace exists or not. If the caller may read the LNamespace of that name, it exists, and the caller is a manager or
// sudoer who is no user.
func explainCreation(ctx context.Context, api client.Client, err error, parent string) error {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot create resource") {
		return err
	}
	if api.Get(ctx, client.ObjectKey{Name: parent}, &v1alpha1.LNamespace{}) == nil {
		if me, failed := ownrights.Identify(ctx, api); failed == nil {
			subject := gather.SubjectOf(me)
			name := subject.Name
			if subject.Kind == v1alpha1.SubjectServiceAccount {
				name = subject.Namespace + ":" + name + " --kind ServiceAccount"
			}
			return fmt.Errorf("%w; you are not among the users of tenant %s, so add yourself: kubectl warren add %s --tenant %s --list users",
				err, parent, name, parent)
		}
	}
	return fmt.Errorf("%w; namespace %s does not exist, or you may not make sub-namespaces in it: check the name, or ask a manager of its "+
		"tenant or a cluster admin for the right", err, parent)
}

func (n *newChild) buildSpec() v1alpha1.SubNamespaceSpec {
	var spec v1alpha1.SubNamespaceSpec
	for key, value := range n.labels {
		if spec.Labels == nil {
			spec.Labels = map[string]v1alpha1.LabelValue{}
		}
		spec.Labels[key] = v1alpha1.LabelValue(value)
	}
	for key, value := range n.annotations {
		if spec.Annotations == nil {
			spec.Annotations = map[string]v1alpha1.AnnotationValue{}
		}
		spec.Annotations[key] = v1alpha1.AnnotationValue(value)
	}
	return spec
}
