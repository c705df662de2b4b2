package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warren-tenancy/warren/internal/billing/cli"
	"github.com/warren-tenancy/warren/internal/operator"
)

// flagsPage lists the flags of the manager and of its subcommands, as their help has them.
func flagsPage(ctx context.Context) (string, error) {
	p := newPage("Flags and environment", "the help of the programs",
		"Every flag of `manager` and its subcommands. [The manager](manager.md) says what each subcommand does, [kubectl warren](commands.md) "+
			"has the flags of the plugin.")
	help, err := exec.CommandContext(ctx, "go", "run", ".", "--help").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("manager --help: %w: %s", err, help)
	}
	if err := writeFlags(p, "manager", string(help)); err != nil {
		return "", err
	}
	for _, name := range operator.Subcommands() {
		if strings.HasPrefix(name, "billing") { // another program runs these, and they follow below
			continue
		}
		var help bytes.Buffer
		if _, err := operator.RunSubcommand(ctx, name, []string{"--help"}, &help); err != nil {
			return "", err
		}
		if err := writeFlags(p, "manager "+name, help.String()); err != nil {
			return "", err
		}
	}
	var exporter bytes.Buffer
	if err := cli.RunProgram(ctx, "", []string{"billing-exporter", "--help"}, &exporter); err != nil {
		return "", err
	}
	if err := writeFlags(p, "manager billing-exporter", exporter.String()); err != nil {
		return "", err
	}
	billing := cli.NewCommand()
	billing.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "manager billing"}
	p.heading("`manager billing`, all subcommands")
	writeFlagSet(p, billing.PersistentFlags())
	p.WriteString(commandsBelow(billing))
	writeEnvironment(p)
	return p.String(), nil
}

// flagInHelp matches a flag in the help of Go's package flag: its name, its type and its usage, whose further lines are indented.
var flagInHelp = regexp.MustCompile(`(?m)^  -(\S+)(?: (\S+))?(?:\n    )?\t((?:.*)(?:\n    \t.*)*)`)

// defaultInUsage matches the default at the end of a usage.
var defaultInUsage = regexp.MustCompile(` \(default (.*)\)$`)

func writeFlags(p *page, program, help string) error {
	found := flagInHelp.FindAllStringSubmatch(help, -1)
	if len(found) == 0 {
		return fmt.Errorf("%s --help shows no flag: %s", program, help)
	}
	p.heading("`"+program+"`", "flag", "type", "default", "means")
	for _, one := range found {
		name, kind, usage := one[1], one[2], strings.Join(strings.Fields(one[3]), " ")
		value := ""
		if at := defaultInUsage.FindStringSubmatch(usage); at != nil {
			usage, value = strings.TrimSuffix(usage, at[0]), strings.Trim(at[1], `"`)
		}
		if kind == "" {
			kind = "bool"
		}
		if len(name) > 1 {
			name = "-" + name
		}
		p.row(code("-"+name), kind, code(value), sentence(usage))
	}
	return nil
}

// writeEnvironment lists the variables of the environment that the programs, or the libraries in them, read.
func writeEnvironment(p *page) {
	p.heading("Environment", "variable", "program", "means")
	p.row("`KUBECONFIG`", "all",
		"The kubeconfig to read, by kubectl's rules, if no flag names one. In a pod where neither is set, the service account is used.")
	p.row("`KUBECTL`", "`kubectl sudo`, `kubectl warren billing`", "The kubectl to run; else the one in the `PATH`.")
	p.row("`GOMEMLIMIT`", "`manager`, `manager-billing`, `manager-bigquery`",
		"The memory that Go may use. The manifests set it to about nine tenths of the memory limit.")
}
