package connection

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// boundUnanswered makes the kernel end a connection on which sent bytes, or probes, have no acknowledgement for the time unanswered.
func boundUnanswered(_, _ string, raw syscall.RawConn) error {
	var refused error
	err := raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
	})
	return errors.Join(err, refused)
}
