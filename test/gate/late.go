package gate

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Lag delays what these watches show by late, as an API server does that is behind. It affects those that begin within the time lasts.
// When that time is over, they catch up.
func (g *Gate) Lag(late, lasts time.Duration, these func(*http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late, g.lagEnd, g.lags = late, time.Now().Add(lasts), these
}

// delay returns the answer to a watch, delayed if Lag is about it and its time is not over.
func (g *Gate) delay(answer *http.Response) io.ReadCloser {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !time.Now().Before(g.lagEnd) || !g.lags(answer.Request) {
		return answer.Body
	}
	l := &lateStream{ReadCloser: answer.Body, late: g.late, end: g.lagEnd, pieces: make(chan piece, 10_000), closed: make(chan struct{})}
	go l.receive()
	return l
}

// lateStream is an answer of which each piece is delivered some time after it has come.
type lateStream struct {
	io.ReadCloser
	late   time.Duration
	end    time.Time // from then on nothing is late
	pieces chan piece
	first  []byte // the rest of the piece that is being delivered

	close  sync.Once
	closed chan struct{}
}

type piece struct {
	text []byte
	came time.Time
}

func (l *lateStream) receive() {
	defer close(l.pieces)
	for {
		text := make([]byte, 32<<10)
		n, err := l.ReadCloser.Read(text)
		if n > 0 {
			select {
			case l.pieces <- piece{text[:n], time.Now()}:
			case <-l.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (l *lateStream) Read(p []byte) (int, error) {
	if len(l.first) == 0 {
		next, more := <-l.pieces
		if !more {
			return 0, io.EOF
		}
		select {
		case <-time.After(min(time.Until(next.came.Add(l.late)), time.Until(l.end))):
		case <-l.closed:
			return 0, io.EOF
		}
		l.first = next.text
	}
	n := copy(p, l.first)
	l.first = l.first[n:]
	return n, nil
}

// Close implements io.Closer.
func (l *lateStream) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.ReadCloser.Close()
}
