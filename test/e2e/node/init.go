//go:build linux

package node

import (
	"fmt"
	"os"
	"syscall"
)

// Init is process 1 of an enclosure. It starts this program again with the arguments, and reaps every process whose parent has ended, such
// as containerd's shims. It ends when that program does, whereupon the kernel ends all other processes. It doesn't return.
func Init(args []string) {
	code, err := initialise(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

func initialise(args []string) (int, error) {
	syscall.Umask(0o022) // a stricter umask would apply to the root folders of containers, and pods that are not root could not start
	if err := mountOwn(os.Getenv(dirEnv)); err != nil {
		return 0, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	// Not package exec: it would wait for the program by itself, and the loop below waits for all.
	child, err := os.StartProcess("/proc/self/exe", append([]string{os.Args[0]}, args...), &os.ProcAttr{
		Files: []*os.File{null, os.Stdout, os.Stderr},
	})
	if err != nil {
		return 0, fmt.Errorf("starting the program of the enclosure: %w", err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, fmt.Errorf("waiting for the program of the enclosure: %w", err)
		case pid == child.Pid && status.Exited():
			return status.ExitStatus(), nil
		case pid == child.Pid:
			return 0, fmt.Errorf("the program of the enclosure was ended by a signal: %s", status.Signal())
		}
	}
}
