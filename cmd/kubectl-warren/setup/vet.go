package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/rolevetting"
	"github.com/warren-tenancy/warren/internal/text"
	"github.com/warren-tenancy/warren/internal/userrole"
)

// Exit statuses of vet.
const (
	statusNew    = 1 // users have rights that were not vetted
	statusDanger = 2 // users have dangerous rights
	statusUnseen = 3 // the rights are unknown, because something went wrong
)

// vettingDocument is what vet prints as JSON or YAML.
type vettingDocument struct {
	invocation.Document
	Kubernetes  string `json:"kubernetes"`
	ClusterRole string `json:"clusterRole"`
	// List is the version of Kubernetes that the list was written from.
	List     string                `json:"list"`
	Findings []rolevetting.Finding `json:"findings"`
}

// vetOptions are the flags of vet.
type vetOptions struct {
	role      string
	namespace *string
	output    *invocation.Choice
	write     bool
	dir, note string
}

// VetCommand is the command "vet".
func VetCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vet",
		Short: "Compare the rights of the users of every tenant with the vetted list",
		Long: "Compare the rights of the ClusterRole that the users of every tenant have with the vetted list of this version of Kubernetes.\n" +
			"access.userClusterRole of the operator's configuration names that ClusterRole; the default is admin.\n" +
			"The exit status is 0 if nothing was found, 1 if something is new, 2 if something is dangerous, 3 if the comparison failed.",
		Example:           "  kubectl warren vet\n  kubectl warren vet --write --dir docs/vetted --note \"ingress moved\"",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o := &vetOptions{output: invocation.AddFormat(cmd, "Output format"), namespace: invocation.AddOperatorNamespace(cmd)}
	cmd.Flags().StringVar(&o.role, "role", "",
		"ClusterRole to compare, in place of access.userClusterRole of the operator's configuration")
	cmd.Flags().BoolVar(&o.write, "write", false,
		"Write a list of the rights that the ClusterRole has now, named after the version of Kubernetes, instead of comparing")
	cmd.Flags().StringVar(&o.dir, "dir", ".", "With --write, the folder of the list")
	cmd.Flags().StringVar(&o.note, "note", "not reviewed", "With --write, what the review of the list has shown")
	for _, name := range []string{"role", "note"} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions); err != nil {
			panic(err) // the flag was just added
		}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.write {
			return withoutFindings(writeList(cmd.Context(), inv, o))
		}
		return withoutFindings(compareRole(cmd.Context(), inv, o))
	}
	return cmd
}

// held is the role that vet compares with the vetted list, and its server.
type held struct {
	server server
	role   *rolevetting.Role
}

// readRole reads the server's version and the ClusterRole.
func readRole(ctx context.Context, inv *invocation.Invocation, o *vetOptions) (*held, error) {
	api, err := inv.Connect()
	if err != nil {
		return nil, err
	}
	// The version is read first, so that a server that doesn't answer is reported only once.
	info, err := inv.ServerVersion()
	if err != nil {
		return nil, err
	}
	minor, err := rolevetting.Minor(info)
	if err != nil {
		return nil, err
	}
	name := o.role
	if name == "" {
		if name, err = userClusterRole(ctx, inv, api, *o.namespace); err != nil {
			return nil, err
		}
	}
	role, err := userrole.Read(ctx, api, name)
	return &held{server{info.GitVersion, minor}, role}, err
}

// userClusterRole returns the ClusterRole that the operator's configuration names, or admin if the configuration can't
// be read.
func userClusterRole(ctx context.Context, inv *invocation.Invocation, api client.Reader,
	namespace string) (string, error) {
	name, text, err := gather.ReadStoredConfig(ctx, api, namespace)
	if failure.Unavailable(err) {
		terminal.Fprintf(inv.Streams.ErrOut, "Warning: the operator's configuration is not known, so ClusterRole admin is compared; set "+
			"--role to compare another. The cause: %s\n", failure.Describe(err))
		return "admin", nil
	}
	if err != nil {
		return "", err
	}
	c, err := configfile.Parse(name, []byte(text))
	if err != nil {
		return "", err
	}
	return c.Access.UserClusterRole, nil
}

// compareRole prints the findings, and returns an error if there are any.
func compareRole(ctx context.Context, inv *invocation.Invocation, o *vetOptions) error {
	found, err := readRole(ctx, inv, o)
	if err != nil {
		return err
	}
	findings, list, err := rolevetting.Shipped.Judge(found.role, found.server.minor)
	if err != nil {
		return err
	}
	var report bytes.Buffer
	if o.output.Value == "" {
		err = writeFindings(&report, found.role.Name, findings, list)
	} else {
		err = invocation.WriteAs(&report, o.output.Value, vettingDocument{
			invocation.DocumentOf("Vetting"), found.server.version, found.role.Name, list.Kubernetes, append([]rolevetting.Finding{}, findings...),
		})
	}
	if err == nil {
		_, err = report.WriteTo(inv.Streams.Out)
	}
	if err != nil {
		return err
	}
	dangers, news := rolevetting.Count(findings, rolevetting.Danger), rolevetting.Count(findings, rolevetting.New)
	told := fmt.Errorf("ClusterRole %s: %s of severity danger, %d of severity new", found.role.Name,
		text.Count(dangers, "finding", "findings"), news)
	switch {
	case dangers > 0:
		return invocation.StatusError{Status: statusDanger, Err: told}
	case news > 0:
		return invocation.StatusError{Status: statusNew, Err: told}
	}
	return nil
}

// writeFindings writes one line for each finding.
func writeFindings(out io.Writer, role string, findings []rolevetting.Finding, list *rolevetting.List) error {
	if len(findings) == 0 {
		_, err := terminal.Fprintf(out, "ClusterRole %s grants nothing beyond the list of Kubernetes %s, vetted on %s.\n", role, list.Kubernetes,
			list.Reviewed.Date)
		return err
	}
	table := printers.GetNewTabWriter(out)
	for _, f := range findings {
		terminal.Fprintf(table, "%s\t%s\n", f.Severity, f.Message)
	}
	return table.Flush()
}

// withoutFindings returns an error that is not about findings with status statusUnseen: a script must not take it for a
// finding.
func withoutFindings(err error) error {
	if err == nil || errors.As(err, &invocation.StatusError{}) {
		return err
	}
	return invocation.StatusError{Status: statusUnseen, Err: err}
}
