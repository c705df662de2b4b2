package connection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// grace is how long a write that is on its way may take after the process was told to end.
const grace = 5 * time.Second

// FinishWrites is for the field WrapTransport of a rest.Config. A write that was sent is waited for when its context is canceled, as it is
// when the process is told to end: cut off, the operator would not know whether it was carried out. Reads end at once, and so does a write
// whose own time has run out.
func FinishWrites(next http.RoundTripper) http.RoundTripper { return finisher{next, grace} }

type finisher struct {
	next  http.RoundTripper
	grace time.Duration
}

// WrappedRoundTripper lets client-go look through the wrapper.
func (f finisher) WrappedRoundTripper() http.RoundTripper { return f.next }

// RoundTrip implements http.RoundTripper.
func (f finisher) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return f.next.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(r.Context(), func() {
		if errors.Is(r.Context().Err(), context.Canceled) {
			time.AfterFunc(f.grace, cancel)
			return
		}
		cancel()
	})
	end := func() {
		stop()
		cancel()
	}
	answer, err := f.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	answer.Body = &body{ReadCloser: answer.Body, end: sync.OnceFunc(end)}
	return answer, nil
}

// body is that of an answer whose request has a context of its own, which ends with the body.
type body struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
