package sudo

import (
	"net/http"
	"sync"
	"time"
)

// clock is the API server's clock, estimated from the Date of its answers. The operator's own clock may be wrong, and a right that it ends
// must end when the API server says so.
type clock struct {
	mu   sync.Mutex // guards the fields below
	date time.Time  // what the API server's clock was at least
	at   time.Time  // when it was that, by the monotonic clock of this process
}

// mostAhead is how far the estimate may be ahead of an answer: Date has whole seconds, and an answer takes its time. At more, the API
// server's clock was set back.
const mostAhead = 3 * time.Second

// Now returns the time of the API server. Before its first answer, it returns that of this process.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.date.Add(time.Since(c.at))
}

// takeDate takes in the Date of an answer.
func (c *clock) takeDate(date string) {
	is, err := http.ParseTime(date)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.at.IsZero() {
		if was := c.date.Add(now.Sub(c.at)); was.After(is) && was.Sub(is) < mostAhead {
			is = was
		}
	}
	c.date, c.at = is, now
}

// wrapTransport has the Date of each answer set the clock. An answer without Audit-Id is that of a proxy.
func (c *clock) wrapTransport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && response.Header.Get("Audit-Id") != "" {
			c.takeDate(response.Header.Get("Date"))
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
