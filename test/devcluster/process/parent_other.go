//go:build !linux

package process

import "syscall"

// dieWithParent can't make the child die with its parent outside Linux: a parent that is killed leaves its children. A parent that
// is asked to end stops them.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func onLastingThread(start func() error) error { return start() }
