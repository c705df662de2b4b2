package operator

import (
	"context"
	"io"

	"github.com/warren-tenancy/warren/internal/billing/cli"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
	"github.com/warren-tenancy/warren/internal/operator/release"
)

// subcommands are the commands of the binary beside the operator itself: commands that do their work once and end, and the program of the
// billing exporter. Each takes the arguments after its name, and prints to out.
func subcommands(version string) map[string]func(ctx context.Context, args []string, out io.Writer) error {
	return map[string]func(ctx context.Context, args []string, out io.Writer) error{
		"manifests": func(_ context.Context, args []string, out io.Writer) error { return printManifests(args, out) },
		"plan":      printPlan,
		"release":   release.Run,
		"billing":   cli.Run,
		"billing-exporter": func(ctx context.Context, args []string, out io.Writer) error {
			return exporter.Run(ctx, version, args, out)
		},
	}
}

// RunSubcommand runs the subcommand of that name; handled is false where there is no such subcommand.
func RunSubcommand(ctx context.Context, version, name string, args []string, out io.Writer) (handled bool, err error) {
	run, handled := subcommands(version)[name]
	if !handled {
		return false, nil
	}
	return true, run(ctx, args, out)
}
