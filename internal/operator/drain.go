package operator

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// farewell is how long the webhooks are still served when the operator ends.
const farewell = time.Second

// drainingServer refuses no request when the operator ends. A plain server would close idle connections at once, and a request that the
// API server writes at that moment would be lost. So drainingServer serves a little longer. It asks each client to use another connection,
// which the Service leads to another pod.
type drainingServer struct {
	webhook.Server
	ending atomic.Bool
}

// Register serves hook at a path.
func (s *drainingServer) Register(path string, hook http.Handler) {
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.ending.Load() {
			w.Header().Set("Connection", "close") // HTTP/2 sends a GOAWAY for it
		}
		hook.ServeHTTP(w, r)
	}))
}

// Start serves until farewell after ctx ends.
func (s *drainingServer) Start(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		s.ending.Store(true)
		time.AfterFunc(farewell, stop)
	})()
	return s.Server.Start(serving)
}
