package billing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/warren-tenancy/warren/cmd/internal/kubectl"
)

// exporterName is the Deployment in whose pod and container the query runs, managerPath the program there, and managerName
// its name on this machine.
const (
	exporterName = "warren-billing-exporter"
	container    = "exporter"
	managerPath  = "/manager"
	managerName  = "manager"
)

// place is where a query runs.
type place struct {
	// namespace of the exporter, in whose pod the query runs.
	namespace string
	// config is the path of a configuration file, with which the query runs on this computer. If it is empty, the query
	// runs in the exporter's pod.
	config string
}

// buildCommand returns the program to run for a query, and its arguments.
func (p place) buildCommand(cmd *cobra.Command, question []string) (path string, args []string, err error) {
	if p.config != "" {
		if given := kubectl.GivenFlags(cmd.InheritedFlags()); len(given) > 0 {
			return "", nil, fmt.Errorf("%s has no effect with --config, which reads the ledger from this machine: leave it out", given[0])
		}
		path, err = findManager()
		return path, append([]string{"billing", question[0], "--config=" + p.config}, question[1:]...), err
	}
	path, err = kubectl.Find()
	args = append([]string{"exec", "--namespace=" + p.namespace}, kubectl.GivenFlags(cmd.InheritedFlags())...)
	args = append(args, "deployment/"+exporterName, "--container="+container, "--", managerPath, "billing")
	return path, append(args, question...), err
}

// findManager returns the path of the manager: beside this program, else in the PATH.
func findManager() (string, error) {
	if self, err := os.Executable(); err == nil {
		if beside := filepath.Join(filepath.Dir(self), managerName); isFile(beside) {
			return beside, nil
		}
	}
	path, err := exec.LookPath(managerName)
	if err != nil {
		return "", errors.New("flag --config needs Warren's program \"manager\", which is neither in the folder of kubectl-warren nor in the " +
			"PATH; leave --config out to run the command in the exporter's pod")
	}
	return path, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// runProgram runs the command, and streams its output to Out. If the command fails, the error is what problem finds in
// its stderr.
func runProgram(ctx context.Context, path string, args []string, streams genericiooptions.IOStreams) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = streams.Out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return errors.New(describeProblem(said.String(), exit))
	case err != nil:
		return fmt.Errorf("running %s: %w", path, err)
	}
	return nil
}

// describeProblem returns the last message after "error: " in stderr, else the last line of stderr, else the exit status. If no
// exporter is deployed, it adds advice.
func describeProblem(said string, exit *exec.ExitError) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for _, line := range slices.Backward(lines) {
		if sentence, ok := strings.CutPrefix(line, "error: "); ok {
			return sentence
		}
	}
	last := lines[len(lines)-1]
	switch {
	case strings.Contains(last, exporterName) && strings.Contains(last, "NotFound"):
		return last + ": no billing exporter is deployed in this namespace: deploy component billing-sqlite, billing-postgres or " +
			"billing-bigquery, name its namespace with --operator-namespace, or read the ledger from this machine with --config"
	case last == "":
		return exit.Error()
	}
	return last
}
