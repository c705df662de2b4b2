package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/plugin"
)

// commandsPage lists the commands of the plugin with their own flags.
func commandsPage(context.Context) (string, error) {
	p := newPage("Commands of kubectl warren", "the help of the plugin",
		"Every command with its own flags. [The kubectl plugins](../guides/plugins.md) says how to install them.\n\n"+
			"- Each command also takes the flags of kubectl for the connection, behind the command: `kubectl warren tree --context prod`.\n"+
			"- An error is one line on stderr that begins with `error:`. Nothing is on stdout. The status is 1, except where a command "+
			"names another.\n"+
			"- Warnings of the API server are on stderr.\n"+
			"- A command that has no use for `-n` refuses it.\n"+
			"- A command that changes something prints `<resource>/<name> <verb>`, or `unchanged` if nothing was to be done. What "+
			"[admission](admission.md) refuses is refused here, too, with the same message.")
	inv := &invocation.Invocation{Flags: genericclioptions.NewConfigFlags(true), Streams: genericiooptions.NewTestIOStreamsDiscard()}
	return p.String() + commandsBelow(plugin.NewCommand(inv)), nil
}

// commandsBelow returns the sections of a command's subcommands, at every depth.
func commandsBelow(parent *cobra.Command) string {
	var p page
	for _, command := range parent.Commands() {
		if command.Hidden || command.Name() == "help" || command.Name() == "completion" {
			continue
		}
		if command.Runnable() {
			writeCommand(&p, command)
		}
		p.WriteString(commandsBelow(command))
	}
	return p.String()
}

func writeCommand(p *page, command *cobra.Command) {
	p.heading(code(command.CommandPath()))
	p.line("%s", description(command))
	p.line("\n```\n%s\n```", strings.TrimSpace(command.UseLine()))
	writeFlagSet(p, command.LocalNonPersistentFlags())
}

// description returns the long text of a command's help, or else the short one. A list in it ends with an empty line, as Markdown asks.
func description(command *cobra.Command) string {
	if command.Long == "" {
		return sentence(command.Short)
	}
	text, isItem := "", false
	for line := range strings.Lines(strings.ReplaceAll(command.Long, "<", "&lt;")) {
		if isItem && !strings.HasPrefix(line, "- ") {
			text += "\n"
		}
		isItem = strings.HasPrefix(line, "- ")
		text += line
	}
	return strings.TrimSpace(text)
}

// writeFlagSet adds a table of flags, or nothing where there are none.
func writeFlagSet(p *page, flags *pflag.FlagSet) {
	began := false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if !began {
			p.line("")
			p.table("flag", "type", "default", "means")
			began = true
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = fmt.Sprintf("-%s, %s", f.Shorthand, name)
		}
		value := f.DefValue
		if value == "[]" {
			value = ""
		}
		p.row(code(name), f.Value.Type(), code(value), sentence(f.Usage))
	})
}
