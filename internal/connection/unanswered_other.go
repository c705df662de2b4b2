//go:build !linux

package connection

import "syscall"

// boundUnanswered does nothing where the kernel knows no such bound; the probes are sent all the same.
func boundUnanswered(_, _ string, _ syscall.RawConn) error { return nil }
