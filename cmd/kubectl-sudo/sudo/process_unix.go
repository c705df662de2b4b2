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

// replaceProcessBy puts a program in the place of this process. It returns only if that fails.
func replaceProcessBy(path string, args []string) error {
	return syscall.Exec(path, slices.Concat([]string{path}, args), os.Environ())
}

// catchSignals catches the signals that would end this process before its child. It leaves out those that stop a job
// (Ctrl-Z): these stop both processes, as they should.
func catchSignals() (signals <-chan os.Signal, stop func()) {
	all := make(chan os.Signal, 8)
	signal.Notify(all, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	return all, func() { signal.Stop(all) }
}

// relaySignal passes a signal on, unless the terminal sent it to the child as well: a program may take a second Ctrl-C
// for another command.
func relaySignal(process *os.Process, s os.Signal) {
	if (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground() {
		return
	}
	_ = process.Signal(s) // it fails only where the child has ended
}

// inForeground reports whether our process group, to which the child belongs too, is the one that gets signals from the
// terminal's keyboard.
func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = terminal.Close() }()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// statusOf returns the exit status of a child. If a signal ended the child, the same signal ends this process, so that
// our parent process sees it. A signal that does more to a Go program than end it, such as SIGQUIT, gives status 128
// plus its number, as in a shell.
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
			time.Sleep(time.Second) // the signal may arrive on another thread, a moment later
		}
	}
	return 128 + int(s)
}
