package watchset

import "sync"

// setLock is the main lock of a Set. It guards those fields of the Set and of its parts, leases and runs whose comments
// name it, and is taken in this file alone. An event of an object needs the lock only for reading, so that events of
// different parts are stored at the same time; every change of a state needs it for writing. While the lock is held, no
// request is made and no event handler is called; a Sink is called.
type setLock struct {
	mu     sync.RWMutex
	outbox []func() // calls to be made as soon as the lock is free
}

// changeUnderLock calls f while no other goroutine reads or changes anything. Then it frees the lock and makes the
// calls that callAfterUnlock put off.
func (l *setLock) changeUnderLock(f func()) {
	l.mu.Lock()
	defer l.unlockAndCall()
	f()
}

// readUnderLock calls f while no goroutine changes anything.
func (l *setLock) readUnderLock(f func()) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	f()
}

// callAfterUnlock has f called as soon as the lock is free. The caller is a function that changeUnderLock calls.
func (l *setLock) callAfterUnlock(f func()) { l.outbox = append(l.outbox, f) }

func (l *setLock) unlockAndCall() {
	after := l.outbox
	l.outbox = nil
	l.mu.Unlock()
	for _, f := range after {
		f()
	}
}
