package webhooks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
	"unicode"

	"golang.org/x/sync/semaphore"
)

// Anybody who reaches the port may send anything to it, so the size of a request is bounded before anything decodes it.
const (
	// maxBody is the largest AdmissionReview that is read, in bytes.
	maxBody = 3 << 20
	// maxBodies is how much of all reviews together is held at once, in bytes; decoding takes several times as much
	// memory.
	maxBodies = 32 << 20
	// entryBytes is what an entry of a list counts beside its text: a decoder makes 48 to 130 bytes of the two bytes "0,".
	entryBytes = 128
	// bodyTimeout is how long a review may take to arrive. An API server sends it at once.
	bodyTimeout = 10 * time.Second
	// answerTimeout is a little more than an API server waits for an answer, by the timeoutSeconds of our
	// configurations.
	answerTimeout = 10 * time.Second
)

var (
	errNotJSON  = errors.New("a review is a JSON object: send an AdmissionReview of admission.k8s.io/v1 as JSON")
	errTooLarge = errors.New("the review is too large: what the request writes and what it replaces may have 3 MiB together; make the " +
		"object smaller, or delete it")
	errBodiesFull = errors.New("the operator reads too many reviews at the moment; try again")
)

// intake passes reviews on to the handlers, with bodies of bounded size.
type intake struct{ room *semaphore.Weighted }

func newLimitedIntake() intake { return intake{semaphore.NewWeighted(maxBodies)} }

// limitBodySize returns handler with a bound on what it reads. If a body is too large, the read fails with errTooLarge,
// which the handler answers. When the process is to stop, the server's context ends, and with it the context of each
// review. A review that is being answered at that time is still answered, because no request of a user may fail in a
// roll-out.
func (i intake) limitBodySize(handler http.Handler) http.Handler {
	return http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Now().Add(bodyTimeout)) // only the response writers of tests have no deadlines
		b := &body{ReadCloser: r.Body, room: i.room, arrived: func() { _ = connection.SetReadDeadline(time.Time{}) }}
		defer func() { _ = b.Close() }()
		r.Body = b
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerTimeout)
		defer cancel()
		handler.ServeHTTP(w, r.WithContext(ctx))
	}), maxBody)
}

// body is the body of one review. A body that doesn't begin as a JSON object is refused: it would be taken for YAML, in
// which aliases expand a megabyte to gigabytes.
type body struct {
	io.ReadCloser
	room *semaphore.Weighted
	// size is what was read, with its entries, and taken from room.
	size    int64
	begun   bool
	arrived func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	size := int64(n + entryBytes*bytes.Count(p[:n], []byte(",")))
	if !b.room.TryAcquire(size) {
		return 0, errBodiesFull
	}
	b.size += size
	if text := bytes.TrimLeftFunc(p[:n], unicode.IsSpace); !b.begun && len(text) > 0 {
		if text[0] != '{' {
			return 0, errNotJSON
		}
		b.begun = true
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		err = errTooLarge
	}
	if errors.Is(err, io.EOF) {
		b.arrived()
	}
	return n, err
}

// Close implements io.Closer. A handler that waits closes the body before, so that others may send theirs.
func (b *body) Close() error {
	b.room.Release(b.size)
	b.size = 0
	return b.ReadCloser.Close()
}
