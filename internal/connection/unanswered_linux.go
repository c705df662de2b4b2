package connection

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// boundUnanswered has the kernel end a connection on which sent bytes, or probes, stay without an acknowledgement for as long as unanswered
// says.
func boundUnanswered(_, _ string, raw syscall.RawConn) error {
	var refused error
	err := raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
	})
	return errors.Join(err, refused)
}
