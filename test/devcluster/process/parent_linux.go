package process

import (
	"runtime"
	"sync"
	"syscall"
)

// dieWithParent lets the kernel kill the child when its parent goes, however that ends: a panic, SIGKILL, the OOM
// killer. A process group of its own keeps a ctrl-C at the terminal from reaching it before its parent stops it in
// order.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// lastingThread runs functions on one OS thread that lives as long as the program: the kernel takes the *thread* that
// forked a child for its parent, and Go ends threads when it likes.
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
