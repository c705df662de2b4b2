package kubectl

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// IsGlobalFlag reports whether kubectl, behind words, takes --NAME for the flag that all its commands have. A command can have
// another flag of that name, as "create rolebinding" has --user. kubectl's completion describes each flag that a command has,
// and runs neither the command nor a plugin.
func IsGlobalFlag(ctx context.Context, flag *pflag.Flag, words []string) bool {
	path, err := Find()
	if err != nil {
		return false // nothing will run
	}
	cmd := exec.CommandContext(ctx, path, slices.Concat([]string{cobra.ShellCompRequestCmd}, words, []string{"--" + flag.Name})...)
	cmd.Env = append(os.Environ(), "KUBECTL_COMPLETION_DESCRIPTIONS=true")
	described, err := cmd.Output()
	return err == nil && slices.Contains(strings.Split(string(described), "\n"), "--"+flag.Name+"\t"+flag.Usage)
}
