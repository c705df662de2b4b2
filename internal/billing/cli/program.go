package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/warren-tenancy/warren/internal/billing/exporter"
)

const programUsage = `Usage: manager billing COMMAND [FLAG...]
       manager billing-exporter [FLAG...]

This is the part of Warren that works with the billing ledger. The program "manager", in the same folder, runs it with the same arguments.

  billing COMMAND    runs SQL on the ledger, and shows its state; see billing --help
  billing-exporter   writes who holds which namespace to the ledger, as it changes; see billing-exporter --help
`

// RunProgram runs what the programs manager-billing and manager-bigquery share: the exporter or a command, whichever
// args[0] names.
func RunProgram(ctx context.Context, version string, args []string, out io.Writer) error {
	switch {
	case len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]):
		_, err := io.WriteString(out, programUsage)
		return err
	case len(args) > 0 && args[0] == "billing":
		return Run(ctx, args[1:], out)
	case len(args) > 0 && args[0] == "billing-exporter":
		return exporter.Run(ctx, version, args[1:], out)
	}
	return fmt.Errorf("this program is run by manager, and has only the commands billing and billing-exporter, not %q; see --help", args)
}
