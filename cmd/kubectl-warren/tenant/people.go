package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// listed has the values of the flags of add and remove, which say who is meant and in which list.
type listed struct {
	tenant, namespace string
	kind, list        *invocation.Choice
	change            change.Options
}

// The lists of an LNamespace, as --list names them.
const (
	listUsers    = "users"
	listManagers = "managers"
	listSudoers  = "sudoers"
)

// AddCommand is the command "add NAME".
func AddCommand(inv *invocation.Invocation) *cobra.Command {
	return listCommand(inv, &cobra.Command{
		Use: "add NAME", Short: "Add a user, group or service account to a list of a tenant",
		Long: "Add a user, group or service account to one list of a tenant: users, managers or sudoers. All other entries stay, also those\n" +
			"that another person adds at the same time. You must be a manager of the tenant, or use sudo.",
		Example: "  kubectl warren add erin --tenant payments --list users\n" +
			"  kubectl warren add pay-oncall --kind Group --tenant payments --list sudoers\n" +
			"  kubectl warren add ci:deployer --kind ServiceAccount --tenant payments --list users --dry-run=server",
	}, addSubject)
}

// RemoveCommand is the command "remove NAME".
func RemoveCommand(inv *invocation.Invocation) *cobra.Command {
	return listCommand(inv, &cobra.Command{
		Use: "remove NAME", Short: "Remove a user, group or service account from a list of a tenant",
		Long: "Remove a user, group or service account from one list of a tenant: users, managers or sudoers. All other entries stay. Rights\n" +
			"that somebody has by another list, or by a group, stay too. You must be a manager of the tenant, or use sudo.",
		Example: "  kubectl warren remove erin --tenant payments --list users\n" +
			"  kubectl warren remove pay-oncall --kind Group --tenant payments --list sudoers",
	}, removeSubject)
}

// edit returns the list with or without the subject; done is false if there is nothing to change.
type edit func(l *listed, present []v1alpha1.Subject, subject v1alpha1.Subject) (after []v1alpha1.Subject, done bool, err error)

func listCommand(inv *invocation.Invocation, cmd *cobra.Command, edit edit) *cobra.Command {
	l := &listed{}
	cmd.Args = invocation.ExactlyAsUsage("one user, group or service account")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Annotations = map[string]string{invocation.UsesNamespace: "yes"}
	cmd.Flags().StringVar(&l.tenant, "tenant", "", "The tenant, by the name of its LNamespace")
	if err := cmd.RegisterFlagCompletionFunc("tenant", inv.CompleteRoots); err != nil {
		panic(err) // the flag was just added
	}
	l.list = invocation.AddChoice(cmd, "list", "", "", "The list of the LNamespace", listUsers, listManagers, listSudoers)
	l.kind = invocation.AddChoice(cmd, "kind", "", string(v1alpha1.SubjectUser), "What NAME is; a ServiceAccount is NAMESPACE:NAME, or "+
		"NAME with --namespace", string(v1alpha1.SubjectUser), string(v1alpha1.SubjectGroup), string(v1alpha1.SubjectServiceAccount))
	l.change = change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("namespace") {
			l.namespace = *inv.Flags.Namespace
		}
		return l.changeList(cmd.Context(), inv, args[0], cmd.Name(), edit)
	}
	return cmd
}

// untilOthersRest is how long a change is tried again while others, such as the operator in the status, change the same
// LNamespace.
var untilOthersRest = wait.Backoff{Steps: 12, Duration: 20 * time.Millisecond, Factor: 1.5, Jitter: 1,
	Cap: 2 * time.Second}

// changeList changes the list of the LNamespace, and begins anew if the LNamespace has changed since it was read.
func (l *listed) changeList(ctx context.Context, inv *invocation.Invocation, name, verb string, edit edit) error {
	subject, err := l.buildSubject(name)
	if err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	lns := &v1alpha1.LNamespace{}
	var done bool
	err = retry.RetryOnConflict(untilOthersRest, func() error {
		if err := l.readTenant(ctx, api, verb, name, lns); err != nil {
			return err
		}
		before, present := lns.DeepCopy(), l.listOf(lns)
		after, changed, err := edit(l, *present, subject)
		if done = changed; err != nil || !changed {
			return err
		}
		if *present = after; l.change.IsRehearsed() {
			return nil
		}
		guarded := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return l.change.ClientFor(api).Patch(ctx, lns, guarded)
	})
	switch {
	case err != nil:
		return err
	case !done && !l.change.PrintsObjects():
		terminal.Fprintf(inv.Streams.Out, "unchanged: %s is among the %s of %s already\n", subject, l.list.Value, l.tenant)
		return nil
	}
	lns.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("LNamespace"))
	direction := map[string]string{"add": "added to", "remove": "removed from"}[verb]
	if err := change.PrintDone(inv, lns, l.change, fmt.Sprintf("changed: %s %s its %s", subject, direction, l.list.Value)); err != nil {
		return err
	}
	if verb == "add" && l.list.Value == listUsers {
		tellHowToFind(inv, l.change, l.tenant)
	}
	return nil
}

func (l *listed) readTenant(ctx context.Context, api client.Client, verb, name string, lns *v1alpha1.LNamespace) error {
	err := api.Get(ctx, client.ObjectKey{Name: l.tenant}, lns)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("--tenant: there is no tenant %s: kubectl warren ns shows yours", l.tenant)
	case failure.Refused(err):
		return fmt.Errorf("you may not change the lists of tenant %s, or it does not exist: ask one of its managers or, as a sudoer: %s",
			l.tenant, l.buildSudoCommand(verb, name))
	}
	return err
}

// buildSudoCommand returns the command line that makes the change with sudo.
func (l *listed) buildSudoCommand(verb, name string) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@.:_-/", r)
	}) {
		name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	words := []string{"kubectl sudo --tenant", l.tenant, "warren", verb, name}
	if l.kind.Value != string(v1alpha1.SubjectUser) {
		words = append(words, "--kind", l.kind.Value)
	}
	if l.namespace != "" {
		words = append(words, "--namespace", l.namespace)
	}
	return strings.Join(append(words, "--tenant", l.tenant, "--list", l.list.Value), " ")
}

func (l *listed) listOf(lns *v1alpha1.LNamespace) *[]v1alpha1.Subject {
	switch l.list.Value {
	case listManagers:
		return &lns.Spec.Managers
	case listSudoers:
		return &lns.Spec.Sudoers
	}
	return &lns.Spec.Users
}

// buildSubject returns the entry that name and the flags describe. What only the API server can judge is left to it.
func (l *listed) buildSubject(name string) (v1alpha1.Subject, error) {
	subject := v1alpha1.Subject{Kind: v1alpha1.SubjectKind(l.kind.Value), Name: name}
	switch {
	case l.tenant == "":
		return subject, errors.New("--tenant is missing: name the tenant, as in --tenant payments")
	case l.list.Value == "":
		return subject, errors.New("--list is missing: choose users, managers or sudoers (--as is kubectl's flag for impersonation)")
	case name == "":
		return subject, fmt.Errorf("the name of the %s is empty: name one", subject.Kind)
	}
	if err := invocation.CheckName("tenant", l.tenant); err != nil {
		return subject, fmt.Errorf("--tenant: %w", err)
	}
	switch {
	case subject.Kind == v1alpha1.SubjectServiceAccount:
		return serviceAccount(name, l.namespace)
	case strings.HasPrefix(name, "system:serviceaccount:"):
		return subject, fmt.Errorf("%s is a service account: write --kind ServiceAccount, and its name as NAMESPACE:NAME",
			name)
	case l.namespace != "":
		return subject, fmt.Errorf("--namespace is for --kind ServiceAccount: a %s has no namespace", subject.Kind)
	}
	return subject, nil
}

// serviceAccount returns the service account called NAMESPACE:NAME, or NAME in the namespace given.
func serviceAccount(text, given string) (v1alpha1.Subject, error) {
	namespace, name, qualified := strings.Cut(text, ":")
	if !qualified {
		namespace, name = given, text
	}
	account := v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: namespace, Name: name}
	switch {
	case name == "" || strings.Contains(name, ":"):
		return account, fmt.Errorf("invalid service account %q: write NAMESPACE:NAME, as in ci:deployer", text)
	case !qualified && given == "":
		return account, fmt.Errorf("the namespace of service account %s is missing: write NAMESPACE:%s, or add --namespace",
			text, text)
	case given != "" && given != namespace:
		return account, fmt.Errorf("%q names namespace %s, and --namespace names %s: name one of them", text, namespace,
			given)
	}
	return account, invocation.CheckName("namespace", namespace)
}

func addSubject(_ *listed, present []v1alpha1.Subject,
	subject v1alpha1.Subject) (after []v1alpha1.Subject, done bool, err error) {
	if slices.Contains(present, subject) {
		return present, false, nil
	}
	return append(slices.Clone(present), subject), true, nil
}

func removeSubject(l *listed, present []v1alpha1.Subject,
	subject v1alpha1.Subject) (after []v1alpha1.Subject, done bool, err error) {
	if i := slices.Index(present, subject); i >= 0 {
		return slices.Delete(slices.Clone(present), i, i+1), true, nil
	}
	if len(present) == 0 {
		return nil, false, fmt.Errorf("%s is not among the %s of %s: that list is empty", subject, l.list.Value, l.tenant)
	}
	var names []string
	for _, other := range present {
		names = append(names, other.String())
	}
	return nil, false, fmt.Errorf("%s is not among the %s of %s: those are %s", subject, l.list.Value, l.tenant,
		strings.Join(names, ", "))
}
