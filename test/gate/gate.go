// Package gate stands between an operator and the API server, so that a case can hold requests back at a chosen moment and lose
// answers on their way.
package gate

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/warren-tenancy/warren/internal/devcluster"
	"github.com/warren-tenancy/warren/internal/devcluster/controlplane"
)

// Gate passes requests on to the API server.
type Gate struct {
	server *httptest.Server

	mu   sync.Mutex
	hold func(*http.Request) bool
	lose func(*http.Request) bool
	open chan struct{} // closed when held requests may go on
	held int
}

// New returns a gate before the API server of w, which lets everything through.
func New(w *devcluster.World) *Gate {
	ginkgo.GinkgoHelper()
	config := w.Config(controlplane.Operator)
	target, err := url.Parse(config.Host)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	g := &Gate{open: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches come one event at a time
		ModifyResponse: func(answer *http.Response) error {
			if g.loses(answer.Request) {
				return errors.New("lost")
			}
			return nil
		},
		ErrorLog:     log.New(io.Discard, "", 0), // answers that break off are what it is for
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open := g.stops(r); open != nil {
			select {
			case <-open:
			case <-r.Context().Done():
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	g.server.EnableHTTP2 = true
	g.server.StartTLS()
	ginkgo.DeferCleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
	})
	return g
}

func (g *Gate) loses(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lose != nil && g.lose(r)
}

// stops returns what a request has to wait for, nil if it may go on.
func (g *Gate) stops(r *http.Request) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hold == nil || !g.hold(r) {
		return nil
	}
	g.held++
	return g.open
}

// Stopped counts the requests that were held back since HoldBack was called.
func (g *Gate) Stopped() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

// HoldBack holds these requests back until Release.
func (g *Gate) HoldBack(these func(*http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold, g.open, g.held = these, make(chan struct{}), 0
}

// HoldAfter lets the first n of these requests through, and holds back the others.
func (g *Gate) HoldAfter(n int, these func(*http.Request) bool) {
	let := 0
	g.HoldBack(func(r *http.Request) bool {
		if !these(r) {
			return false
		}
		let++
		return let > n
	})
}

// OfSecrets is a write of one.
func OfSecrets(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.Contains(r.URL.Path+"/", "/secrets/")
}

// Release lets all go on that are held back.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold = nil
	close(g.open)
}

// releaseAnyway is Release where a case may have failed before it came to that: the operator ends when its requests have.
func (g *Gate) releaseAnyway() {
	g.mu.Lock()
	holds := g.hold != nil
	g.mu.Unlock()
	if holds {
		g.Release()
	}
}

// LoseAnswers carries these requests out, and breaks the connection in place of an answer.
func (g *Gate) LoseAnswers(of func(*http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose = of
}

// Kubeconfig is a file with the operator's access to w through the gate.
func (g *Gate) Kubeconfig(w *devcluster.World) string {
	ginkgo.GinkgoHelper()
	access, err := clientcmd.LoadFromFile(w.Kubeconfig(controlplane.Operator))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for _, cluster := range access.Clusters {
		cluster.Server = g.server.URL
		cluster.CertificateAuthority = ""
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	}
	path := filepath.Join(ginkgo.GinkgoT().TempDir(), "kubeconfig")
	gomega.Expect(clientcmd.WriteToFile(*access, path)).To(gomega.Succeed())
	return path
}

// StartOperator starts the operator of w behind the gate, with that configuration.
func (g *Gate) StartOperator(ctx context.Context, w *devcluster.World, configuration string) {
	ginkgo.GinkgoHelper()
	var err error
	w.Operator, err = devcluster.StartOperator(ctx, devcluster.OperatorOptions{
		Kubeconfig: g.Kubeconfig(w), Dir: filepath.Join(w.Dir, "operator"), Config: configuration, WebhookPort: w.WebhookPort,
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	// Before the gate closes: one that comes again while it does would hold it open.
	ginkgo.DeferCleanup(func() {
		g.releaseAnyway()
		if w.Operator.Process().Running() {
			code, err := w.Operator.Stop()
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			gomega.Expect(code).To(gomega.BeZero(), w.Operator.Log)
		}
	})
}
