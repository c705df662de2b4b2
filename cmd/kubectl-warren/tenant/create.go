// Package tenant is the commands that create an LNamespace and change its lists.
package tenant

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/ownrights"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// newTenant has the values of the flags of create lns.
type newTenant struct {
	users, managers, sudoers subjects
	template                 string
	costCenter, owner        string
	change                   change.Options
}

// CreateCommand is the command "create-lns NAME". If the program has the name kubectl-create-lns, it is "kubectl create
// lns NAME".
func CreateCommand(inv *invocation.Invocation) *cobra.Command {
	tenant := &newTenant{}
	cmd := &cobra.Command{
		Use:   "create-lns NAME",
		Short: "Create an LNamespace: a tenant with its root namespace",
		Long: "Create an LNamespace: a tenant with its root namespace. Without any flag that names a person, the tenant is yours: you are\n" +
			"its user, manager and sudoer. If you name anybody, the lists are as you name them, except that you become the manager or the\n" +
			"sudoer of a tenant that would have none.",
		Example: "  kubectl warren create-lns payments --manager mia --user alice --user-group pay-devs --sudoer bob --cost-center 4711\n" +
			"  kubectl warren create-lns payments --user-serviceaccount ci:deployer --dry-run=client -o yaml",
		Annotations: map[string]string{
			invocation.InsteadOfNamespace: "an LNamespace is in no namespace, and kubectl warren create makes a sub-namespace",
		},
		Args:              invocation.ExactlyAsUsage("one LNamespace"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	tenant.users.addFlags(cmd, "user", "who works in the namespaces of the tree")
	tenant.managers.addFlags(cmd, "manager", "who may change this LNamespace")
	tenant.sudoers.addFlags(cmd, "sudoer", "who may raise their rights with sudo")
	cmd.Flags().StringVar(&tenant.template, "template", "",
		"Template namespace that the tree references (cluster admins only)")
	cmd.Flags().StringVar(&tenant.costCenter, "cost-center", "", "Cost center that pays for the tenant")
	cmd.Flags().StringVar(&tenant.owner, "owner", "", "Contact for finance, for example a mail address")
	tenant.change = change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return createTenant(cmd.Context(), inv, tenant, args[0])
	}
	return cmd
}

func createTenant(ctx context.Context, inv *invocation.Invocation, tenant *newTenant, name string) error {
	lns, err := tenant.newLNamespace(name)
	if err != nil {
		return err
	}
	if tenant.change.IsRehearsed() {
		return change.PrintDone(inv, lns, tenant.change, "created")
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	if err := tenant.addCreator(ctx, api, lns); err != nil {
		return err
	}
	if err := tenant.change.ClientFor(api).Create(ctx, lns); apierrors.IsNotFound(err) {
		return fmt.Errorf("this cluster doesn't serve lnamespaces.%s: install Warren first", v1alpha1.Domain)
	} else if err != nil {
		return explainCreation(err)
	}
	if err := change.PrintDone(inv, lns, tenant.change, "created"); err != nil {
		return err
	}
	if len(tenant.users.joinSubjects()) > 0 {
		tellHowToFind(inv, tenant.change, name)
	}
	return nil
}

// explainCreation adds the next step to RBAC's refusal. Those of webhooks and policies have their own.
func explainCreation(err error) error {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot create resource") {
		return err
	}
	return fmt.Errorf("%w; ask a cluster admin to create the tenant, or for ClusterRole warren:lnamespace-creator", err)
}

// tellHowToFind tells the caller, who is no user, what the users of a tenant need to know: their rights don't name it.
func tellHowToFind(inv *invocation.Invocation, c change.Options, tenant string) {
	if c.IsStored() && !c.PrintsObjects() {
		terminal.Fprintf(inv.Streams.ErrOut, "Tell its users: kubectl config set-context --current --namespace=%s, then kubectl warren tree\n",
			tenant)
	}
}

// newLNamespace returns the LNamespace that the flags describe.
func (t *newTenant) newLNamespace(name string) (*unstructured.Unstructured, error) {
	if err := invocation.CheckName("LNamespace", name); err != nil {
		return nil, err
	}
	lns := &v1alpha1.LNamespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LNamespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.LNamespaceSpec{
			Users: t.users.joinSubjects(), Managers: t.managers.joinSubjects(), Sudoers: t.sudoers.joinSubjects(),
			Template: t.template,
		},
	}
	if t.costCenter != "" || t.owner != "" {
		lns.Spec.Billing = &v1alpha1.Billing{CostCenter: t.costCenter, Owner: t.owner}
	}
	return change.ManifestOf(lns)
}

// addCreator lists the caller as a user, if no flag names anybody: the operator makes the caller a manager and a sudoer
// then, and neither may work in the namespaces that they make. A caller who can't be listed is left out.
func (t *newTenant) addCreator(ctx context.Context, api client.Client, lns *unstructured.Unstructured) error {
	if len(t.users.joinSubjects())+len(t.managers.joinSubjects())+len(t.sudoers.joinSubjects()) > 0 {
		return nil
	}
	me, err := ownrights.Identify(ctx, api)
	if failure.Refused(err) {
		return nil
	}
	if err != nil {
		return err
	}
	subject := gather.SubjectOf(me)
	reserved := strings.HasPrefix(subject.Name, "system:") || strings.HasPrefix(subject.Name, "warren:")
	if reserved || strings.HasPrefix(subject.Namespace, "kube-") {
		return nil
	}
	entry, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&subject)
	if err != nil {
		return err
	}
	return unstructured.SetNestedSlice(lns.Object, []any{entry}, "spec", "users")
}
