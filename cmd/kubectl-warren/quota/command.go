// Package quota is the commands about what namespaces may use together: the limits of trees, the share of a namespace, and the request
// for a larger share.
package quota

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// limitsDocument and shareDocument are what quota prints as JSON or YAML.
type (
	limitsDocument struct {
		invocation.Document
		Items Limits `json:"items"`
	}
	shareDocument struct {
		invocation.Document
		*Share
	}
)

// Commands is the command "quota" with the command "quota ask".
func Commands(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use: "quota", SuggestFor: []string{"hrq", "quotas", "budget"},
		Short: "Show what trees may use together, or the share of one namespace",
		Long: "Show what trees may use together: the budgets of tenants, and HierarchicalResourceQuotas, with what is used and free. Without\n" +
			"rights on all of them, you see those of your own trees, and which you may not read.\n" +
			"With --namespace, show the share of that namespace, how much of it is used, and what you can do if it is too small.",
		Example:           "  kubectl warren quota\n  kubectl warren quota -n pay-web",
		Annotations:       map[string]string{invocation.UsesNamespace: "yes"},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	output := invocation.AddFormat(cmd, "Output format")
	tenant := inv.AddTenant(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("namespace") {
			if *tenant != "" {
				return errors.New("--namespace and --tenant don't go together: --namespace shows one share, --tenant the limits of a tree")
			}
			return showShare(cmd, inv, *inv.Flags.Namespace, output.Value)
		}
		api, err := inv.Connect()
		if err != nil {
			return err
		}
		all, err := readAll(cmd.Context(), inv, api, *tenant)
		switch {
		case err != nil:
			return err
		case len(all) == 0 && output.Value == "":
			terminal.Fprintln(inv.Streams.ErrOut,
				"No limits found: a cluster admin sets those of a tenant, in spec.limits.hard of its LNamespace")
			return nil
		}
		return inv.PrintReport(output.Value, all, limitsDocument{invocation.DocumentOf("Limits"), all})
	}
	cmd.AddCommand(askCommand(inv))
	return cmd
}

func showShare(cmd *cobra.Command, inv *invocation.Invocation, namespace, format string) error {
	if err := invocation.CheckNamespaces(namespace); err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	share, err := readShare(cmd.Context(), api, namespace)
	if err != nil {
		return err
	}
	return inv.PrintReport(format, share, shareDocument{invocation.DocumentOf("Share"), share})
}

// askCommand is the command "quota ask RESOURCE=AMOUNT…".
func askCommand(inv *invocation.Invocation) *cobra.Command {
	return &cobra.Command{
		Use:   "ask RESOURCE=AMOUNT…",
		Short: "Ask for room for one object that the API server refused",
		Long: "Ask for room for one object, such as a PersistentVolumeClaim, that the API server refused because the share of its\n" +
			"namespace is too small. Controllers need no such request: their Events are one. You need the right to create Events\n" +
			"in the namespace.",
		Example:           "  kubectl warren quota ask -n pay-web requests.storage=500Gi persistentvolumeclaims=1",
		Annotations:       map[string]string{invocation.UsesNamespace: "yes"},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, words []string) error {
			asked, err := ParseRequest(words)
			if err != nil {
				return err
			}
			namespace, _, err := inv.Flags.ToRawKubeConfigLoader().Namespace()
			if err != nil {
				return err
			}
			if err := invocation.CheckNamespaces(namespace); err != nil {
				return err
			}
			api, err := inv.Connect()
			if err != nil {
				return err
			}
			return askForRoom(cmd.Context(), inv, api, namespace, asked)
		},
	}
}
