package change

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
)

// ForAdmins lets a command that cluster admins use add the next step to RBAC's refusal. Refusals of webhooks and policies
// have their own.
func ForAdmins(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if !failure.Refused(err) || !strings.Contains(err.Error(), " cannot ") {
			return err
		}
		return fmt.Errorf("%w; this command is for cluster admins: ask one to run it", err)
	}
	return cmd
}
