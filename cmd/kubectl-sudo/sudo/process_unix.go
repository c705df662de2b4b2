//go:build unix

package sudo

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// replaceProcessBy puts a program in the place of this process. It returns only an error.
func replaceProcessBy(path string, args []string) error {
	return syscall.Exec(path, slices.Concat([]string{path}, args), os.Environ())
}

// catchSignals catches what would end us before our child. Those that stop a job (Ctrl-Z) reach both as they should.
func catchSignals() (signals <-chan os.Signal, stop func()) {
	all := make(chan os.Signal, 8)
	signal.Notify(all, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	return all, func() { signal.Stop(all) }
}

// relaySignal passes a signal on, unless the terminal gave it to the child as well: twice Ctrl-C is more than once.
func relaySignal(process *os.Process, s os.Signal) {
	if (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground() {
		return
	}
	_ = process.Signal(s) // it fails only where the child has ended
}

// inForeground reports that our process group, which is the child's too, has the keyboard of a terminal.
func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = terminal.Close() }()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// statusOf returns the exit status of a child. Where a signal ended it, the same signal ends this process, so that whoever waits
// for us sees it; those that the Go runtime would turn into something else become 128 and the signal's number, as in a shell.
func statusOf(ended *os.ProcessState) int {
	status, ok := ended.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ended.ExitCode()
	}
	s := status.Signal()
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL:
		signal.Reset(s)
		if syscall.Kill(syscall.Getpid(), s) == nil {
			time.Sleep(time.Second) // it comes at once, but on any thread
		}
	}
	return 128 + int(s)
}
