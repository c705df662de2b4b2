//go:build unix

package sudo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// watchedScript is a variable of the environment. If it is set, this test program runs the shell script in it as if
// that were kubectl. So a test sees from outside how the program ends.
const watchedScript = "SUDO_TEST_WATCHED_SCRIPT"

func TestMain(m *testing.M) {
	script := os.Getenv(watchedScript)
	if script == "" {
		os.Exit(m.Run())
	}
	e := &execution{path: "/bin/sh", args: []string{"-c", script}, tenant: "payments", watched: true}
	status, err := e.replaceProcess(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// patience is the time after which a run is killed that should have ended by itself.
const patience = 3 * time.Minute

func watched(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), watchedScript+"="+script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the group of cmd includes the script, so Cancel ends both
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

const forbidden = `Error from server (Forbidden): nodes is forbidden: User "bob" cannot impersonate-on:user-info:list resource "nodes" ` +
	`in API group "" at the cluster scope`

// ACC-P05, for a watched kubectl: one whose stderr the plugin searches for refusals.
func TestWatch(t *testing.T) {
	const hint = "sudo gives rights only in the tree of tenant payments\n"
	cases := map[string]struct {
		script, stdin, stdout, stderr string
		code                          int
		signal                        syscall.Signal
	}{
		"passes on what is said":    {script: "cat; echo done >&2", stdin: "text", stdout: "text", stderr: "done\n"},
		"ends alike":                {script: "exit 3", code: 3},
		"is killed alike":           {script: "kill -INT $$", code: -1, signal: syscall.SIGINT},
		"is killed for good, alike": {script: "kill -KILL $$", code: -1, signal: syscall.SIGKILL},
		"by another signal":         {script: "kill -USR1 $$", code: 128 + int(syscall.SIGUSR1)},
		"explains a refusal":        {script: "echo '" + forbidden + "' >&2; exit 1", stderr: forbidden + "\n" + hint, code: 1},
		"only of impersonation": {script: "echo 'Error from server (Forbidden): no' >&2; exit 1",
			stderr: "Error from server (Forbidden): no\n", code: 1},
		"only of the server":    {script: "echo 'unknown flag: --impersonate' >&2; exit 1", stderr: "unknown flag: --impersonate\n", code: 1},
		"only if it ends badly": {script: "echo '" + forbidden + "' >&2", stderr: forbidden + "\n"},
		"not what is on stdout": {script: "echo '" + forbidden + "'; exit 1", stdout: forbidden + "\n", code: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := watched(t, c.script)
			var stdout, stderr strings.Builder
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.stdin), &stdout, &stderr
			var exit *exec.ExitError
			if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if stdout.String() != c.stdout || stderr.String() != c.stderr {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if cmd.ProcessState.ExitCode() != c.code || status.Signaled() != (c.signal != 0) || status.Signaled() && status.Signal() != c.signal {
				t.Errorf("it ended with %v", cmd.ProcessState)
			}
		})
	}
}

// A signal that another process sends to the plugin reaches kubectl, which may have something to clean up.
func TestWatchPassesSignalsOn(t *testing.T) {
	cmd := watched(t, `trap 'echo cleaned; exit 5' TERM; echo ready; while :; do sleep 0.05; done`)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	_ = cmd.Wait()
	if string(rest) != "cleaned\n" || cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("it said %q and ended with %v", rest, cmd.ProcessState)
	}
}

// However kubectl splits its output into writes, all of it is passed on at once and the refusal is noticed.
func TestRefusalsInPieces(t *testing.T) {
	text := "a line\n" + strings.Repeat("x", 2*longest) + "\n" + forbidden + "\nanother\n"
	for _, size := range []int{1, 7, 64, len(text)} {
		var out bytes.Buffer
		r := &refusals403{to: &out}
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if n, err := r.Write(rest[:min(size, len(rest))]); n != min(size, len(rest)) || err != nil {
				t.Fatal(n, err)
			}
		}
		if out.String() != text || !r.impersonation {
			t.Errorf("in pieces of %d: noticed %t, %d of %d bytes", size, r.impersonation, out.Len(), len(text))
		}
	}
}
