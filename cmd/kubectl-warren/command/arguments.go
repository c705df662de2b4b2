package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// exactlyAsUsage lets a command take as many arguments as its usage names; what says which.
func exactlyAsUsage(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		_, words, _ := strings.Cut(cmd.Use, " ")
		if len(args) != len(strings.Fields(words)) {
			return fmt.Errorf("name %s, not %d: %s %s", what, len(args), cmd.CommandPath(), words)
		}
		return nil
	}
}

// checkNamespaces refuses what can't be the names of namespaces.
func checkNamespaces(names ...string) error {
	for _, name := range names {
		if err := checkName("namespace", name); err != nil {
			return err
		}
	}
	return nil
}
