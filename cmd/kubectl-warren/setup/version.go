package setup

import (
	"bytes"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// versions is what version prints as JSON or YAML.
type versions struct {
	Client invocation.Build `json:"clientVersion"`
	Server *version.Info    `json:"serverVersion,omitempty"`
}

// VersionCommand is the command "version".
func VersionCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the plugin and, if the API server answers, the server's version",
		Example: "  kubectl warren version\n  kubectl warren version --client",
		Args:    cobra.NoArgs,
	}
	clientOnly := cmd.Flags().Bool("client", false, "Don't ask the API server")
	output := invocation.AddFormat(cmd, "Output format")
	cmd.RunE = func(*cobra.Command, []string) error {
		all := versions{Client: inv.Build}
		if !*clientOnly {
			server, err := inv.ServerVersion()
			if err != nil {
				terminal.Fprintln(inv.Streams.ErrOut, "Warning: the server's version is unknown: "+failure.Describe(err))
			}
			all.Server = server
		}
		return printVersions(inv, all, output.Value)
	}
	return cmd
}

func printVersions(inv *invocation.Invocation, all versions, format string) error {
	var text bytes.Buffer
	if format != "" {
		if err := invocation.WriteAs(&text, format, all); err != nil {
			return err
		}
	} else {
		terminal.Fprintln(&text, "Client Version:", all.Client.Version)
		if all.Client.Commit != "" {
			terminal.Fprintln(&text, "Commit:", all.Client.Commit)
		}
		terminal.Fprintln(&text, "Go Version:", all.Client.GoVersion)
		if all.Server != nil {
			terminal.Fprintln(&text, "Server Version:", all.Server.GitVersion)
		}
	}
	_, err := text.WriteTo(inv.Streams.Out)
	return err
}
