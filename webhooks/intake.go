package webhooks

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
	"unicode"

	"golang.org/x/sync/semaphore"
)

// Whoever reaches the port may send what they like, so what is read of it is bounded before anything decodes it.
const (
	// maxBody is the largest review that is read, in bytes.
	maxBody = 3 << 20
	// maxBodies is how much of all reviews together is held at once, in bytes; decoding takes several times as much.
	maxBodies = 32 << 20
	// bodyTimeout is how long a review may take to arrive. An API server sends it at once.
	bodyTimeout = 10 * time.Second
)

var (
	errNotJSON    = errors.New("a review is a JSON object: send an AdmissionReview of admission.k8s.io/v1 as JSON")
	errBodiesFull = errors.New("the operator reads too many reviews at the moment; try again")
)

// intake hands reviews on to the handlers, with bodies that are bounded.
type intake struct{ room *semaphore.Weighted }

func newIntake() intake { return intake{semaphore.NewWeighted(maxBodies)} }

// guard bounds what handler reads. Where a body is refused, the handler's own answer says so.
func (i intake) guard(handler http.Handler) http.Handler {
	return http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Now().Add(bodyTimeout)) // a writer without deadlines is a test's
		b := &body{ReadCloser: r.Body, room: i.room, arrived: func() { _ = connection.SetReadDeadline(time.Time{}) }}
		defer func() { i.room.Release(b.size) }()
		r.Body = b
		handler.ServeHTTP(w, r)
	}), maxBody)
}

// body is that of one review. What doesn't begin as a JSON object is refused: it would be taken for YAML, where aliases make gigabytes of
// a megabyte.
type body struct {
	io.ReadCloser
	room *semaphore.Weighted
	// size is what has been read, and taken from room, in bytes.
	size    int64
	begun   bool
	arrived func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.room.TryAcquire(int64(n)) {
		return 0, errBodiesFull
	}
	b.size += int64(n)
	if text := bytes.TrimLeftFunc(p[:n], unicode.IsSpace); !b.begun && len(text) > 0 {
		if text[0] != '{' {
			return 0, errNotJSON
		}
		b.begun = true
	}
	if errors.Is(err, io.EOF) {
		b.arrived()
	}
	return n, err
}
