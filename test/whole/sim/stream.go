package sim

import (
	"io"
	"sync"
)

// stream is the body of a watch. Its reader waits on a channel, so that a bubble with readers alone is idle.
type stream struct {
	mu     sync.Mutex // guards sent and err; nobody waits while holding it
	sent   []byte
	err    error
	more   chan struct{}
	closed bool
}

func newStream() *stream { return &stream{more: make(chan struct{}, 1)} }

// Read implements io.Reader.
func (s *stream) Read(to []byte) (int, error) {
	for {
		s.mu.Lock()
		if len(s.sent) > 0 {
			n := copy(to, s.sent)
			s.sent = s.sent[n:]
			s.mu.Unlock()
			return n, nil
		}
		err := s.err
		s.mu.Unlock()
		if err != nil {
			return 0, err
		}
		<-s.more
	}
}

// send gives the reader some bytes.
func (s *stream) send(bytes []byte) {
	s.mu.Lock()
	s.sent = append(s.sent, bytes...)
	s.mu.Unlock()
	s.wake()
}

// end has the reader meet an error, after what was sent; io.EOF is a watch that ends as it should.
func (s *stream) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.wake()
}

func (s *stream) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// Close implements io.Closer: the client wants no more.
func (s *stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end(io.ErrClosedPipe)
	return nil
}

func (s *stream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
