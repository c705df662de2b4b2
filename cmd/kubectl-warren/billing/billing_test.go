package billing_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/billing"
)

// recorder is a program that writes its arguments to the file RECORD, one a line, prints "rows", and then runs the
// shell command TELL.
const recorder = `#!/bin/sh
printf '%s\n' "$@" >"$RECORD"
echo rows
eval "$TELL"
`

// run runs `kubectl warren billing ARGS` with a recorder as kubectl. It returns the recorder's arguments, the output
// and the error.
func run(t *testing.T, tell string, args ...string) (recorded []string, out string, err error) {
	t.Helper()
	dir := t.TempDir()
	record := filepath.Join(dir, "arguments")
	for _, name := range []string{"kubectl", "manager"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(recorder, "$RECORD", record)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("KUBECTL", "")
	t.Setenv("TELL", tell)
	var printed bytes.Buffer
	streams := genericiooptions.IOStreams{Out: &printed, ErrOut: &printed}
	top := &cobra.Command{Use: "kubectl-warren", SilenceErrors: true, SilenceUsage: true}
	genericclioptions.NewConfigFlags(true).AddFlags(top.PersistentFlags())
	top.AddCommand(billing.Commands(streams))
	top.SetArgs(append([]string{"billing"}, args...))
	err = top.ExecuteContext(t.Context())
	text, readErr := os.ReadFile(record)
	if readErr == nil {
		recorded = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	return recorded, printed.String(), err
}

func TestAsks(t *testing.T) {
	pod := "exec --namespace=warren-system deployment/warren-billing-exporter --container=exporter -- /manager billing "
	for name, c := range map[string]struct{ typed, want string }{
		"status":   {"status", pod + "status"},
		"sql":      {"sql SELECT -o csv", pod + "sql -o=csv -- SELECT"},
		"write":    {"sql DROP --write", pod + "sql --write=true -- DROP"},
		"ddl":      {"ddl", pod + "ddl"},
		"a hyphen": {"sql -- -o", pod + "sql -- -o"},
		"connection": {"--context=prod --as eve --as-group a --as-group b status",
			strings.Replace(pod, "system ", "system --as=eve --as-group=a --as-group=b --context=prod ", 1) + "status"},
		"elsewhere": {"status --operator-namespace=w", strings.Replace(pod, "warren-system", "w", 1) + "status"},
		"beside":    {"sql SELECT --config=c.yaml", "billing sql --config=c.yaml -- SELECT"},
	} {
		t.Run("BILL-46 the plugin runs the command in the exporter's pod, with the flags, cluster and user of its caller; "+
			"with --config it runs it on the caller's machine: "+name, func(t *testing.T) {
			recorded, out, err := run(t, "", strings.Fields(c.typed)...)
			if got := strings.Join(recorded, " "); got != c.want || out != "rows\n" || err != nil {
				t.Errorf("%s\nran    %s\nwanted %s\nprinted %q, %v", c.typed, got, c.want, out, err)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	// A case that tells the recorder nothing has wrong arguments.
	for name, c := range map[string]struct{ tell, typed, want string }{
		"the exporter's sentence": {"echo 'error: the ledger refused the query' >&2; echo 'command terminated with exit code 1' >&2; exit 1",
			"sql x", "the ledger refused the query"},
		"nothing deployed": {`echo 'Error from server (NotFound): deployments.apps "warren-billing-exporter" not found' >&2; exit 1`, "status",
			"no billing exporter is deployed in this namespace: deploy component billing-sqlite, billing-postgres or billing-bigquery"},
		"no right": {`echo 'Error from server (Forbidden): pods "x" is forbidden: User "eve" cannot create resource ` +
			`"pods/exec"' >&2; exit 1`, "status", `User "eve" cannot create resource "pods/exec"`},
		"silence":                      {"exit 3", "status", "exit status 3"},
		"no word":                      {"", "sql", "name one STATEMENT, not 0: kubectl-warren billing sql STATEMENT"},
		"two words":                    {"", "sql SELECT 1", "name one STATEMENT, not 2"},
		"a word":                       {"", "status now", `takes no arguments, got "now"`},
		"a flag that would do nothing": {"", "status --config=c.yaml --context=prod", "--context=prod has no effect with --config"},
		"unknown flag":                 {"", "status --dry-run", "unknown flag: --dry-run"},
	} {
		t.Run("BILL-47 a missing exporter, a missing right and a failed command are errors of one sentence; "+
			"so are wrong arguments, which run no command: "+name, func(t *testing.T) {
			recorded, _, err := run(t, c.tell, strings.Fields(c.typed)...)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, wanted %s", err, c.want)
			}
			if isWrong := c.tell == ""; (recorded == nil) != isWrong {
				t.Errorf("ran %q", recorded)
			}
		})
	}
}
