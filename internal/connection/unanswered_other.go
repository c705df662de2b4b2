//go:build !linux

package connection

import "syscall"

// boundUnanswered does nothing where the kernel has no such limit; the kernel sends its probes nevertheless.
func boundUnanswered(_, _ string, _ syscall.RawConn) error { return nil }
