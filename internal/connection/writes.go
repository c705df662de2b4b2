package connection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// grace is how long a write that was sent may still take after the process was told to end.
const grace = 5 * time.Second

// FinishWrites is for the field WrapTransport of a rest.Config. When the process is told to end, the context of each request is canceled.
// A write that was sent may then take the time grace to finish, because the operator would otherwise not know whether it was carried out.
// Reads end at once, and so does a write whose own deadline has passed.
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

// body is the body of an answer. Its request has a context of its own, which ends when the body is closed.
type body struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
