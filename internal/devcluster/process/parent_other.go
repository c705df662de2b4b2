//go:build !linux

package process

import "syscall"

// dieWithParent can't promise that outside Linux: a program that is killed leaves its children. One that is asked to
// end stops them.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func onLastingThread(start func() error) error { return start() }
