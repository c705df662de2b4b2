package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/warren-tenancy/warren/internal/servingcert"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// Clients write into their connections all the time, as the API server does. Before a pod ends, its Service already sends new connections
// to the next pod.
func TestNoRequestIsLostWhenAServerEnds(t *testing.T) {
	t.Run("FLT-U19 while clients send requests without a pause on open connections, and one replica after another ends, no request "+
		"is lost", testNoRequestIsLost)
}

func testNoRequestIsLost(t *testing.T) {
	var address atomic.Value // of the server to which new connections go
	clients, stopClients := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var sent, lost atomic.Int64
	end := startDraining(t, &address)
	for range 20 {
		running.Go(func() {
			transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
				DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, network, address.Load().(string))
				}}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			for clients.Err() == nil {
				sent.Add(1)
				answer, err := client.Post("https://webhook/", "", bytes.NewReader(make([]byte, 1000)))
				if err != nil {
					lost.Add(1)
					t.Log(err)
					continue
				}
				_ = answer.Body.Close()
			}
		})
	}
	for range 3 {
		next := startDraining(t, &address)
		end()
		end = next
	}
	stopClients()
	running.Wait()
	end()
	if lost.Load() > 0 {
		t.Errorf("%d of %d requests were lost", lost.Load(), sent.Load())
	}
}

// startDraining starts a server, stores its address, and returns the function that ends the server.
func startDraining(t *testing.T, address *atomic.Value) (end func()) {
	t.Helper()
	pair, err := servingcert.New([]string{"localhost"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	port, err := process.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	server := &drainingServer{Server: webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }
		}},
	})}
	server.Register("/", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	for server.StartedChecker()(nil) != nil {
		select {
		case err := <-ended:
			t.Fatalf("the server ended before it served: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	address.Store("127.0.0.1:" + strconv.Itoa(port))
	return func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
