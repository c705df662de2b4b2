package plugin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/plugin"
)

func TestHelp(t *testing.T) {
	t.Run("SUB-X19 the help has groups, and first the commands of every day; the flags of kubectl are in options", func(t *testing.T) {
		help := run(t, "kubectl-warren", "--help").out
		for _, title := range []string{"Every day:\n", "People and rights:\n", "The operator:\n", "About the plugin:\n"} {
			if !strings.Contains(help, "\n"+title) {
				t.Errorf("the help has no group %q:\n%s", title, help)
			}
		}
		if strings.Contains(help, "Additional Commands") || strings.Contains(help, "--kubeconfig") {
			t.Errorf("commands without a group, or flags of kubectl:\n%s", help)
		}
		if of := run(t, "kubectl-warren", "tree", "--help").out; strings.Contains(of, "--kubeconfig") || !strings.Contains(of, "--output") {
			t.Errorf("the help of tree:\n%s", of)
		}
		if of := run(t, "kubectl-warren", "create", "--help").out; !strings.Contains(of, "--namespace") {
			t.Errorf("the help of create lacks --namespace:\n%s", of)
		}
		if options := run(t, "kubectl-warren", "options").out; !strings.Contains(options, "--kubeconfig") {
			t.Errorf("options:\n%s", options)
		}
	})
	t.Run("SUB-X20 the help of each command has an example that begins with that command", func(t *testing.T) {
		inv := &invocation.Invocation{Flags: genericclioptions.NewConfigFlags(true), Streams: genericiooptions.NewTestIOStreamsDiscard()}
		checkExamples(t, plugin.NewCommand(inv))
	})
}

func checkExamples(t *testing.T, parent *cobra.Command) {
	t.Helper()
	for _, command := range parent.Commands() {
		if slices.Contains([]string{"help", "completion"}, command.Name()) {
			continue
		}
		checkExamples(t, command)
		if !command.HasSubCommands() && !strings.Contains(command.Example, "  "+command.CommandPath()) {
			t.Errorf("%s: its example is %q", command.CommandPath(), command.Example)
		}
	}
}
