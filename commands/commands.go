// Package commands are the subcommands of bin/manager, one file each. Without one of them it runs the operator.
package commands

import (
	"context"
	"io"
)

// all are the subcommands by name. Each reads its own flags and answers on out; an error says in one sentence what is wrong.
var all = map[string]func(ctx context.Context, args []string, out io.Writer) error{
	"manifests": func(_ context.Context, args []string, out io.Writer) error { return Manifests(args, out) },
}

// Run carries out the subcommand of that name. handled is false if there is none.
func Run(ctx context.Context, name string, args []string, out io.Writer) (handled bool, err error) {
	command, handled := all[name]
	if !handled {
		return false, nil
	}
	return true, command(ctx, args, out)
}
