package sudo_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/warren-tenancy/warren/cmd/kubectl-sudo/sudo"
)

// run carries out a command line without a reachable API server. The only kubectl that it can find is the one that the
// variable KUBECTL names.
func run(t *testing.T, kubectl string, line ...string) (status int, out, problems string) {
	t.Helper()
	return runAs(t, "/bin/kubectl-sudo", kubectl, line...)
}

// runAs runs the program under a name.
func runAs(t *testing.T, name, kubectl string, line ...string) (status int, out, problems string) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	t.Setenv("PATH", t.TempDir())
	t.Setenv("KUBECTL", kubectl)
	var stdout, stderr bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}
	status = sudo.Run(append([]string{name}, line...), streams, "v1.2.3")
	return status, stdout.String(), stderr.String()
}

// program is a kubectl that must not be run.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(path, []byte("#!/bin/false\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRefusals(t *testing.T) {
	const nowhere = "https://127.0.0.1:1"
	there := program(t)
	cases := map[string]struct {
		kubectl string
		line    []string
		want    string
	}{
		"all namespaces": {there, []string{"get", "pods", "-A"},
			"-A can't be used with sudo, which covers only one tenant: name a namespace with -n"},
		"all namespaces, in front": {there, []string{"-A", "get", "pods"},
			"-A can't be used with sudo, which covers only one tenant: name a namespace with -n"},
		"somebody":           {there, []string{"get", "pods", "--as=x"}, "--as is set by kubectl sudo"},
		"somebody, in front": {there, []string{"--as=x", "get", "pods"}, "--as is set by kubectl sudo"},
		"no kubectl":         {"", []string{"get", "pods"}, "kubectl not found; set KUBECTL"},
		"not that kubectl":   {"/no/kubectl", []string{"get", "pods"}, `kubectl not found; set KUBECTL, which is "/no/kubectl" now`},
		"unknown flag": {there, []string{"--foo", "get", "pods"},
			"unknown flag: --foo: if kubectl has this flag, write it after COMMAND; see kubectl sudo --help"},
		"a flag of a command": {there, []string{"-o", "yaml", "get", "pods"},
			"unknown shorthand flag: 'o' in -o: if kubectl has this flag, write it after COMMAND; see kubectl sudo --help"},
		"a flag without its value": {there, []string{"--tenant"}, "flag needs an argument: --tenant: see kubectl sudo --help"},
		"no reason":                {there, []string{"--reason", " ", "get", "pods"}, "--reason is empty: say why, or leave it out"},
		"ACC-P13 if the value of --reason is a command of kubectl, as in --reason get secrets, kubectl sudo refuses the line": {
			there, []string{"--reason", "get", "secrets"}, `--reason has no text: its value is "get", a command of kubectl`},
		"a reason of two lines": {there, []string{"--reason", "a\nb", "get", "pods"},
			`--reason "a\nb" holds a control character: it must be one line of text`},
		"ACC-P16 a --reason that turns the direction of text is refused": {there,
			[]string{"--reason", "fix \u202e42-CNI", "get", "pods"},
			`--reason "fix \u202e42-CNI" holds a character that breaks the line or turns the direction of text: write plain text`},
		"ACC-P16 a --reason with a line separator is refused": {there,
			[]string{"--reason", "a\u2028b", "get", "pods"},
			`--reason "a\u2028b" holds a character that breaks the line or turns the direction of text: write plain text`},
		"ACC-P27 a --reason with a character that no log shows is refused": {there,
			[]string{"--reason", "INC\u200b-42", "get", "pods"},
			`--reason "INC\u200b-42" holds a character that no log shows: write plain text`},
		"no tenant":          {there, []string{"--tenant=", "get", "pods"}, "--tenant is empty: name a tenant, or leave it out"},
		"list takes nothing": {there, []string{"--list", "get", "pods"}, `--list takes no COMMAND, but "get" is given`},
		"no server": {there, []string{"-s", nowhere, "get", "pods"}, "can't reach the API server " + nowhere +
			" (dial tcp 127.0.0.1:1: connect: connection refused): check --server, --context and the kubeconfig"},
		"no server, behind": {there, []string{"get", "pods", "-s", nowhere}, "can't reach the API server " + nowhere +
			" (dial tcp 127.0.0.1:1: connect: connection refused): check --server, --context and the kubeconfig"},
		"no server, for the list": {there, []string{"--list", "-s", nowhere}, "can't reach the API server " + nowhere +
			" (dial tcp 127.0.0.1:1: connect: connection refused): check --server, --context and the kubeconfig"},
		"no such context, in front": {there, []string{"--context", "nope", "get", "pods"},
			`finding the API server by the kubeconfig and flags: context "nope" does not exist`},
		"no such context, behind": {there, []string{"get", "pods", "--context=nope"},
			`finding the API server by the kubeconfig and flags: context "nope" does not exist`},
		"no such kubeconfig, behind": {there, []string{"get", "pods", "--kubeconfig", "/nofile"},
			"finding the API server by the kubeconfig and flags: stat /nofile: no such file or directory"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status, out, problems := run(t, c.kubectl, c.line...)
			if status != 1 || out != "" || problems != "error: "+c.want+"\n" {
				t.Errorf("status %d, stdout %q, stderr:\n%s", status, out, problems)
			}
		})
	}
}

// The last two lines of case ACC-P06: no command, and --help.
func TestUsage(t *testing.T) {
	status, out, problems := run(t, program(t))
	if status != 1 || out != "" || !strings.Contains(problems, "kubectl sudo [--tenant TENANT] [--reason TEXT] COMMAND") {
		t.Errorf("without a command: status %d, stdout %q, stderr %q", status, out, problems)
	}
	status, out, problems = run(t, "", "--help")
	if status != 0 || problems != "" || !strings.Contains(out, "kubectl sudo [--tenant TENANT] [--reason TEXT] COMMAND") {
		t.Errorf("--help: status %d, stdout %q, stderr %q", status, out, problems)
	}
	if strings.Contains(out, "--as-uid") || strings.Contains(out, "--all-namespaces") {
		t.Errorf("--help lists flags that aren't its own:\n%s", out)
	}
}
