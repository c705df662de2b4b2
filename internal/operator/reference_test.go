package operator

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing/cli"
	"github.com/warren-tenancy/warren/internal/billing/questions"
)

// TestReferenceListsEveryFlag compares docs/reference/manager.md with the flags of the operator and of each subcommand, both ways.
func TestReferenceListsEveryFlag(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/manager.md")
	if err != nil {
		t.Fatal(err)
	}
	_, subcommandRows, _ := strings.Cut(string(page), "## Subcommands")
	operatorRows, _, _ := strings.Cut(string(page), "## Subcommands")
	described := map[string]string{"": operatorRows}
	row := regexp.MustCompile("(?m)^\\| `([a-z-]+)[^`]*` \\|.*$")
	for _, found := range row.FindAllStringSubmatch(subcommandRows, -1) {
		described[found[1]] = found[0]
	}
	for name := range subcommands() {
		if described[name] == "" {
			t.Errorf("docs/reference/manager.md doesn't list subcommand %s", name)
		}
	}
	for name, text := range described {
		want := flagsOf(t, name)
		var got []string
		for _, found := range regexp.MustCompile("(?:--|`-)([a-z][a-z-]*\\*?)").FindAllStringSubmatch(text, -1) {
			got = append(got, found[1])
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
			t.Errorf("flags of manager %s (-code +docs/reference/manager.md):\n%s", name, diff)
		}
	}
}

// flagsOf are the flags of a subcommand, or of the operator for "", in the order of the alphabet. Those of logging are one: zap-*.
func flagsOf(t *testing.T, subcommand string) []string {
	t.Helper()
	var names []string
	switch subcommand {
	case "":
		var o Options
		flags := flag.NewFlagSet("manager", flag.ContinueOnError)
		o.BindFlags(flags)
		flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		main, err := os.ReadFile("../../main.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`flag\.[A-Z][a-z]+\("([a-z-]+)"`).FindAllSubmatch(main, -1) {
			names = append(names, string(found[1]))
		}
		names = append(names, "kubeconfig", "zap-*") // controller-runtime's
	case "billing":
		for _, cmd := range questions.Commands(nil).Commands() {
			names = append(names, flagsInHelp(t, "billing", cmd.Name())...)
		}
	default:
		names = flagsInHelp(t, subcommand)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// flagsInHelp are the flags that --help of a subcommand shows.
func flagsInHelp(t *testing.T, words ...string) []string {
	t.Helper()
	var help bytes.Buffer
	run := RunSubcommand
	if strings.HasPrefix(words[0], "billing") { // the operator hands these over
		run = func(ctx context.Context, name string, args []string, out io.Writer) (bool, error) {
			return true, cli.RunProgram(ctx, "test", append([]string{name}, args...), out)
		}
	}
	if _, err := run(t.Context(), words[0], append(words[1:], "--help"), &help); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^ +--?([a-z-]+)`).FindAllStringSubmatch(help.String(), -1) {
		name := found[1]
		switch {
		case name == "h": // of help itself
			continue
		case strings.HasPrefix(name, "zap-"):
			name = "zap-*"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		t.Errorf("manager %s --help shows no flag:\n%s", strings.Join(words, " "), help.String())
	}
	return names
}
