package live

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// askInterval is the least time between two requests while the API server does not answer, or knows the credentials no more.
const askInterval = 1500 * time.Millisecond

// gate lets the follower's requests pass to the API server. When one fails, the others wait, and one of them asks at a time: informers that
// each asked by themselves would ask too often at first, and wait too long when the API server is back. mu guards what is below it.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed when requests may pass again; nil while they may
	turn   time.Time     // when the next request may ask
}

// newGate makes the requests of config pass a gate. It returns a copy of config.
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

// WrappedRoundTripper lets client-go find the transport below.
func (g *gatedTransport) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip sends a request, when its turn has come. A request that has waited is sent again until the API server answers.
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

// isAway reports whether an answer is that of a proxy whose API server is away, or of an API server that rejects the credentials.
func isAway(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// waitForTurn returns when the request may be sent, and reports whether that was because its turn has come.
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

// takeTurn returns nil where requests may pass. Else it takes the next turn, or returns how long to wait for it.
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
