package exporter

import (
	"net/http"
	"sync/atomic"
	"time"
)

// serverClock is the API server's clock, as far as the Date of its answers tells: a change that no stamp dates is dated by it,
// and not by the clock of whichever node the exporter runs on.
type serverClock struct {
	// ahead is how much to add to our own clock, in nanoseconds.
	ahead atomic.Int64
}

// tolerance is what a Date may differ because it has whole seconds and was under way.
const tolerance = 3 * time.Second

// Now implements clock.PassiveClock.
func (c *serverClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Since implements clock.PassiveClock.
func (c *serverClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// listen wraps the transport to the API server. Answers come every few seconds, with the renewals of the Lease.
func (c *serverClock) listen(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			c.hear(response.Header.Get("Date"), time.Now())
		}
		return response, err
	})
}

func (c *serverClock) hear(date string, now time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	if ahead := at.Sub(now); ahead.Abs() > tolerance {
		c.ahead.Store(int64(ahead))
	} else {
		c.ahead.Store(0)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
