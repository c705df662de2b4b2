package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// parentEnv makes the test binary a parent that starts one child, prints the child's PID, and waits to be killed.
const parentEnv = "WARREN_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) == "" {
		os.Exit(m.Run())
	}
	p := process.New("/bin/sleep", []string{"600"}, nil, os.DevNull)
	if err := p.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	select {}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestChildDiesWithItsKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux promises it")
	}
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || gone(child) {
		t.Fatalf("the parent said %q: no child to look at", line)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	for range 6000 {
		if gone(child) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = syscall.Kill(child, syscall.SIGKILL)
	t.Errorf("child %d outlived its parent by a minute", child)
}

func sh(t *testing.T, script string) *process.Process {
	t.Helper()
	p := process.New("/bin/sh", []string{"-c", script}, []string{"GREETING=hello"}, filepath.Join(t.TempDir(), "log"))
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func TestStopAsksKillDoesNot(t *testing.T) {
	p := sh(t, `trap 'echo asked; exit 7' TERM; echo $GREETING; while :; do sleep 0.01; done`)
	ready := func(context.Context) error {
		if !strings.Contains(p.LogTail(5), "hello") {
			return errors.New("says nothing yet")
		}
		return nil
	}
	if err := p.StartReady(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err == nil {
		t.Error("a running process was started again")
	}
	if err := p.Stop(); err != nil || p.ExitCode() != 7 || p.LogTail(1) != "asked" {
		t.Errorf("Stop: %v, exit code %d, log %q", err, p.ExitCode(), p.LogTail(1))
	}
	if err := p.StartReady(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil || p.ExitCode() != -1 || p.Running() || p.LogTail(1) != "hello" {
		t.Errorf("Kill: %v, exit code %d, running %t, log %q", err, p.ExitCode(), p.Running(), p.LogTail(1))
	}
}

func TestEndAtStartShowsTheLog(t *testing.T) {
	p := sh(t, "echo the disk is on fire; exit 3")
	err := p.StartReady(t.Context(), func(context.Context) error { return errors.New("not yet") })
	if err == nil || !strings.Contains(err.Error(), "exit code 3") || !strings.Contains(err.Error(), "on fire") {
		t.Errorf("got %v", err)
	}
}

func TestLostPortIsReplaced(t *testing.T) {
	var ports []int
	err := process.OnFreePort(func(port int) (*process.Process, error) {
		ports = append(ports, port)
		if len(ports) == 1 {
			p := sh(t, "echo listen tcp: bind: address already in use; exit 1")
			return p, p.StartReady(t.Context(), func(context.Context) error { return errors.New("not yet") })
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return nil, err
		}
		return nil, l.Close()
	})
	if err != nil || len(ports) != 2 {
		t.Errorf("got ports %v, %v", ports, err)
	}
}
