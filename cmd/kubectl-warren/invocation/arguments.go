package invocation

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ExactlyAsUsage lets a command take exactly as many arguments as its usage names. what describes them in the error
// message.
func ExactlyAsUsage(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		_, words, _ := strings.Cut(cmd.Use, " ")
		if len(args) != len(strings.Fields(words)) {
			return fmt.Errorf("name %s, not %d: %s %s", what, len(args), cmd.CommandPath(), words)
		}
		return nil
	}
}

// CheckNamespaces refuses what can't be the names of namespaces.
func CheckNamespaces(names ...string) error {
	for _, name := range names {
		if err := CheckName("namespace", name); err != nil {
			return err
		}
	}
	return nil
}

// CheckName refuses what can't be the name of a namespace, or of a tenant.
func CheckName(what, name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("invalid %s name %q: must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end", what,
			name)
	}
	return nil
}

// AddOperatorNamespace gives cmd the flag --operator-namespace.
func AddOperatorNamespace(cmd *cobra.Command) *string {
	namespace := cmd.Flags().String("operator-namespace", "warren-system", "Namespace of the operator")
	if err := cmd.RegisterFlagCompletionFunc("operator-namespace", cobra.NoFileCompletions); err != nil {
		panic(err) // the flag was just added
	}
	return namespace
}
