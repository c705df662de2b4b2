package exporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// endpoint serves HTTP on an address; nothing on "0".
type endpoint struct {
	// flag is the flag that names the address.
	flag    string
	address string
	handler http.Handler
}

// healthEndpoint answers /healthz and /readyz. The exporter is always ready, because it serves no requests that another replica could
// serve better.
func healthEndpoint(address string) *endpoint {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	return &endpoint{"--health-probe-bind-address", address, mux}
}

func metricsEndpoint(address string) *endpoint {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	return &endpoint{"--metrics-bind-address", address, mux}
}

// NeedLeaderElection says that standbys serve too.
func (*endpoint) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (e *endpoint) Start(ctx context.Context) error {
	if e.address == "0" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.address)
	if err != nil {
		return fmt.Errorf("%s %q can't be used: %w; choose another port", e.flag, e.address, err)
	}
	server := &http.Server{Handler: e.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 90 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving at %s %q: %w", e.flag, e.address, err)
	}
	return nil
}
