package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
)

// configCommands is the group of commands "config …".
func (p *plugin) configCommands() *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Look at the operator's configuration"}
	group.AddCommand(p.configValidate(), p.configView())
	return group
}

// configValidate is the command "config validate FILE".
func (p *plugin) configValidate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a configuration file as the operator would",
		Long: "Check a configuration file as the operator would, without a cluster: whether the kinds that it names are served is not judged.\n" +
			"All problems are told, one line each. FILE can be - for standard input.",
		Example: "  kubectl warren config validate config.yaml\n  kubectl warren config validate config.yaml -o yaml   # with all defaults filled in",
		Args:    exactlyAsUsage("one file"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	output := addChoice(cmd, "output", "o", "", "Print the whole configuration, with its defaults", outputJSON, outputYAML)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		data, err := p.readFile(args[0])
		if err != nil {
			return err
		}
		return p.printValidity(args[0], data, output.value, args[0]+" is valid\n")
	}
	return cmd
}

// readFile reads a file, or standard input where that is called -.
func (p *plugin) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(p.streams.In)
	}
	return os.ReadFile(name)
}

// printValidity prints text if a file's content is valid, or all that it says.
func (p *plugin) printValidity(name string, data []byte, format, text string) error {
	c, err := config.Parse(name, data)
	if err != nil {
		return problems(strings.Split(err.Error(), "\n"))
	}
	for _, warning := range c.Warnings() {
		terminal.Fprintf(p.streams.ErrOut, "Warning: %s: %s\n", name, warning)
	}
	if format != "" {
		return writeAs(p.streams.Out, format, c)
	}
	_, err = io.WriteString(p.streams.Out, text)
	return err
}

// configView is the command "config view".
func (p *plugin) configView() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "view",
		Short:             "Print the configuration file that the operator reads",
		Long:              "Print the configuration file that the operator reads, from ConfigMap " + configMapName + ": as it is, or whole with -o.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	namespace := addOperatorNamespace(cmd)
	output := addChoice(cmd, "output", "o", "", "Print the whole configuration, with its defaults", outputJSON, outputYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := p.connect()
		if err != nil {
			return err
		}
		name, text, err := storedConfig(cmd.Context(), api, *namespace)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("there is no %s: --operator-namespace names another namespace; an operator without a file runs with the defaults", name)
		case err != nil:
			return err
		case output.value == "": // as it is, valid or not
			_, err = io.WriteString(p.streams.Out, text)
			return err
		}
		return p.printValidity(name, []byte(text), output.value, "")
	}
	return cmd
}

// configMapName is the ConfigMap that `make deploy` makes, which is mounted as the operator's configuration file.
const configMapName = "warren-config"

// storedConfig reads the configuration file that is stored in the cluster. name is what to call it.
func storedConfig(ctx context.Context, api client.Reader, namespace string) (name, text string, err error) {
	stored := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: configMapName}
	err = api.Get(ctx, key, stored)
	return "ConfigMap " + key.String(), stored.Data["config.yaml"], err
}

// addOperatorNamespace gives cmd the flag --operator-namespace.
func addOperatorNamespace(cmd *cobra.Command) *string {
	namespace := cmd.Flags().String("operator-namespace", "warren-system", "Namespace of the operator")
	if err := cmd.RegisterFlagCompletionFunc("operator-namespace", cobra.NoFileCompletions); err != nil {
		panic(err) // the flag was just added
	}
	return namespace
}
