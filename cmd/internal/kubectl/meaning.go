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

// IsGlobalFlag reports whether the flag, written after words, is kubectl's global flag, which all commands have. A
// command can have another flag of that name: "create rolebinding" has its own --user. To find out, IsGlobalFlag asks
// kubectl's completion, which describes each flag of a command and runs neither the command nor a plugin.
func IsGlobalFlag(ctx context.Context, flag *pflag.Flag, words []string) bool {
	path, err := Find()
	if err != nil {
		return false // without kubectl, no command will run
	}
	cmd := exec.CommandContext(ctx, path, slices.Concat([]string{cobra.ShellCompRequestCmd}, words, []string{"--" + flag.Name})...)
	cmd.Env = append(os.Environ(), "KUBECTL_COMPLETION_DESCRIPTIONS=true")
	described, err := cmd.Output()
	return err == nil && slices.Contains(strings.Split(string(described), "\n"), "--"+flag.Name+"\t"+flag.Usage)
}
