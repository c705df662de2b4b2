// Package commands holds the subcommands of the manager: what it does once and then ends.
package commands

import (
	"context"
	"io"
)

// byName are the subcommands. Each takes the arguments behind its name and prints to out.
var byName = map[string]func(ctx context.Context, args []string, out io.Writer) error{
	"manifests": func(_ context.Context, args []string, out io.Writer) error { return Manifests(args, out) },
	"release":   Release,
}

// Run runs the subcommand of that name. It is not handled where there is none.
func Run(ctx context.Context, name string, args []string, out io.Writer) (handled bool, err error) {
	command, handled := byName[name]
	if !handled {
		return false, nil
	}
	return true, command(ctx, args, out)
}
