package operator

import (
	"context"
	"io"
	"maps"
	"slices"

	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/internal/operator/release"
)

// subcommands are the commands of the binary beside the operator itself: commands that do their work once and end, and those of billing,
// which another program carries out. Each takes the arguments after its name, and prints to out.
func subcommands() map[string]func(ctx context.Context, args []string, out io.Writer) error {
	return map[string]func(ctx context.Context, args []string, out io.Writer) error{
		"manifests":        func(_ context.Context, args []string, out io.Writer) error { return printManifests(args, out) },
		"release":          release.Run,
		"billing":          handOverBilling("billing"),
		"billing-exporter": handOverBilling("billing-exporter"),
	}
}

// handOverBilling returns a subcommand that replaces this process by the program of billing, which has a subcommand of the same name.
func handOverBilling(name string) func(context.Context, []string, io.Writer) error {
	return func(_ context.Context, args []string, _ io.Writer) error {
		return programs.HandOver(programs.Billing, "manager "+name, append([]string{name}, args...))
	}
}

// Subcommands returns the names of the subcommands, in alphabetical order.
func Subcommands() []string { return slices.Sorted(maps.Keys(subcommands())) }

// RunSubcommand runs the subcommand of that name; handled is false where there is no such subcommand.
func RunSubcommand(ctx context.Context, name string, args []string, out io.Writer) (handled bool, err error) {
	run, handled := subcommands()[name]
	if !handled {
		return false, nil
	}
	return true, run(ctx, args, out)
}
