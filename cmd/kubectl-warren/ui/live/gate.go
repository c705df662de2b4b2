package live

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// askInterval is the least time between two requests while the API server does not answer, or rejects the credentials.
const askInterval = 1500 * time.Millisecond

// gate lets the follower's requests pass to the API server. When one fails, the others wait, and one of them is sent as
// a trial every askInterval. Informers that each tried by themselves would try too often at first, and wait too long
// when the API server is back. mu guards what is below it.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed when requests may pass again; nil while they may
	turn   time.Time     // when the next trial may be sent
}

// newGate returns a copy of config whose requests pass a gate.
func newGate(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	g := &gate{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &gatedTransport{g, next} })
	return config
}

// gatedTransport is one of the transports that client-go makes from a config. All of them pass the same gate.
type gatedTransport struct {
	*gate
	next http.RoundTripper
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (g *gatedTransport) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip sends a request, when its turn has come. A request that has waited, and has no body, is sent again until
// something answers: the API server, or a proxy before it.
func (g *gatedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		waited, err := g.waitForTurn(r)
		if err != nil {
			return nil, err
		}
		answer, err := g.next.RoundTrip(r)
		switch {
		case err != nil && r.Context().Err() != nil:
			return answer, err
		case err != nil && waited && r.Body == nil:
			continue
		case err != nil || isAway(answer):
			g.closeGate()
			return answer, err
		}
		g.openGate()
		return answer, nil
	}
}

// isAway reports whether an answer comes from a proxy that doesn't reach its API server, or from an API server that
// rejects the credentials.
func isAway(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// waitForTurn waits until the request may be sent. waited reports that the gate is closed, and that it is the turn of
// this request.
func (g *gate) waitForTurn(r *http.Request) (waited bool, err error) {
	for {
		opened, wait := g.takeTurn()
		if opened == nil || wait <= 0 {
			return opened != nil, nil
		}
		select {
		case <-r.Context().Done():
			return false, r.Context().Err()
		case <-opened:
		case <-time.After(wait):
		}
	}
}

// takeTurn returns a nil channel if requests may pass. Otherwise wait is how long the caller must wait; if wait is 0 or
// less, it is the caller's turn.
func (g *gate) takeTurn() (opened <-chan struct{}, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		return nil, 0
	}
	now := time.Now()
	if wait = g.turn.Sub(now); wait <= 0 {
		g.turn = now.Add(askInterval)
	}
	return g.opened, wait
}

func (g *gate) closeGate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened, g.turn = make(chan struct{}), time.Now().Add(askInterval)
	}
}

func (g *gate) openGate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}
