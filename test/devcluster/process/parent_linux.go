package process

import (
	"runtime"
	"sync"
	"syscall"
)

// dieWithParent lets the kernel kill the child when its parent ends, however that happens: a panic, SIGKILL, the OOM killer. The child
// has a process group of its own, so a ctrl-C at the terminal doesn't reach it: its parent stops it in order.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// lastingThread runs functions on one OS thread that lives as long as the program. For the kernel, a child's parent is the *thread* that
// forked it, and Go ends threads when it likes.
var lastingThread = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

func onLastingThread(start func() error) error {
	result := make(chan error)
	lastingThread() <- func() { result <- start() }
	return <-result
}
