package watchset

import "sync"

// setLock is the one lock of a Set. It guards what the Set, its parts, its leases and their runs report that it guards, and is taken in
// this file alone. Events of objects read, so that events of different parts are stored at the same time; every change of a state
// changes. No request is made while the lock is held, and no event handler called; a Sink is called.
type setLock struct {
	mu     sync.RWMutex
	outbox []func() // calls to be made as soon as the lock is free
}

// changeUnderLock calls f while nobody else reads or changes anything, then frees the lock, and then makes the calls that were put off.
func (l *setLock) changeUnderLock(f func()) {
	l.mu.Lock()
	defer l.unlockAndCall()
	f()
}

// readUnderLock calls f while nobody changes anything.
func (l *setLock) readUnderLock(f func()) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	f()
}

// callAfterUnlock has f called as soon as the lock is free. The caller is a function that change calls.
func (l *setLock) callAfterUnlock(f func()) { l.outbox = append(l.outbox, f) }

func (l *setLock) unlockAndCall() {
	after := l.outbox
	l.outbox = nil
	l.mu.Unlock()
	for _, f := range after {
		f()
	}
}
