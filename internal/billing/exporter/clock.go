package exporter

import (
	"net/http"
	"sync/atomic"
	"time"
)

// serverClock is the API server's clock, estimated from the Date header of its answers. It dates changes that have no
// timestamp, so that the dates don't depend on the clock of the exporter's node.
type serverClock struct {
	// ahead is the difference to add to this process's clock, in nanoseconds.
	ahead atomic.Int64
}

// tolerance is how far a Date header may differ from this process's clock without a correction. The header has whole
// seconds, and the answer took time to arrive.
const tolerance = 3 * time.Second

// mostAhead limits how far the API server's clock may be from this process's clock. At a larger difference, this
// process's own clock counts.
const mostAhead = 24 * time.Hour

// Now implements clock.PassiveClock.
func (c *serverClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Since implements clock.PassiveClock.
func (c *serverClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// wrapTransport wraps the transport to the API server so that the Date of each answer sets the clock. An answer without
// Audit-Id comes from a proxy in between, and is ignored. Answers come every few seconds, because the Lease is renewed.
func (c *serverClock) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && response.Header.Get("Audit-Id") != "" {
			c.setFromDate(response.Header.Get("Date"), time.Now())
		}
		return response, err
	})
}

func (c *serverClock) setFromDate(date string, now time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	if ahead := at.Sub(now); ahead.Abs() > tolerance && ahead.Abs() < mostAhead {
		c.ahead.Store(int64(ahead))
	} else {
		c.ahead.Store(0)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
