package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/warren-tenancy/warren/internal/billing/exporter"
)

// RunProgram is what the programs manager-billing and manager-bigquery share: it runs the exporter or a command, as the first argument
// says.
func RunProgram(ctx context.Context, version string, args []string, out io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "billing":
		return Run(ctx, args[1:], out)
	case len(args) > 0 && args[0] == "billing-exporter":
		return exporter.Run(ctx, version, args[1:], out)
	}
	return fmt.Errorf("this program is run by manager, and knows billing and billing-exporter alone, not %q", args)
}
