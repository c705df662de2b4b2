package main

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// meter counts what the clients of one rest.Config ask for, and what comes back.
type meter struct {
	watches, others atomic.Int64
	received        atomic.Int64 // bytes, as they come from the network
}

// measured returns cfg with the meter in all connections, and without a limit of requests.
func (m *meter) measured(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return meteredRequests{m, next} })
	dialer := &net.Dialer{}
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return meteredConn{c, m}, nil
	}
	return cfg
}

type meteredRequests struct {
	*meter
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r meteredRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") != "" {
		r.watches.Add(1)
	} else {
		r.others.Add(1)
	}
	return r.next.RoundTrip(request)
}

type meteredConn struct {
	net.Conn
	meter *meter
}

// Read implements net.Conn.
func (c meteredConn) Read(to []byte) (int, error) {
	n, err := c.Conn.Read(to)
	c.meter.received.Add(int64(n))
	return n, err
}
