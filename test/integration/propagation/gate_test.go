package propagation_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/controlplane"
)

// gate stands between an operator and the API server. It can hold requests back, and lose answers on their way.
type gate struct {
	server *httptest.Server

	mu   sync.Mutex
	hold func(*http.Request) bool
	lose func(*http.Request) bool
	open chan struct{} // closed when held requests may go on
}

func newGate(w *test.World) *gate {
	GinkgoHelper()
	config := w.Config(controlplane.Operator)
	target, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig})
	Expect(err).NotTo(HaveOccurred())
	g := &gate{open: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches come one event at a time
		ModifyResponse: func(answer *http.Response) error {
			if g.asked(func() func(*http.Request) bool { return g.lose }, answer.Request) {
				return errors.New("lost")
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.asked(func() func(*http.Request) bool { return g.hold }, r) {
			select {
			case <-g.open:
			case <-r.Context().Done():
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	g.server.EnableHTTP2 = true
	g.server.StartTLS()
	DeferCleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
	})
	return g
}

func (g *gate) asked(rule func() func(*http.Request) bool, r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	is := rule()
	return is != nil && is(r)
}

func (g *gate) holdBack(these func(*http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold, g.open = these, make(chan struct{})
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold = nil
	close(g.open)
}

func (g *gate) loseAnswers(of func(*http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose = of
}

// startOperator starts the operator of w behind the gate.
func (g *gate) startOperator(ctx context.Context, w *test.World) {
	GinkgoHelper()
	access, err := clientcmd.LoadFromFile(w.Kubeconfig(controlplane.Operator))
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range access.Clusters {
		cluster.Server = g.server.URL
		cluster.CertificateAuthority = ""
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
	}
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*access, kubeconfig)).To(Succeed())
	w.Operator, err = test.StartOperator(ctx, test.OperatorOptions{
		Kubeconfig: kubeconfig, Dir: filepath.Join(w.Dir, "operator"), Config: setup{}.config(),
	})
	Expect(err).NotTo(HaveOccurred())
	// Before the gate closes: one that comes again while it does would hold it open.
	DeferCleanup(func() {
		if w.Operator.Process().Running() {
			code, err := w.Operator.Stop()
			Expect(err).NotTo(HaveOccurred())
			Expect(code).To(BeZero(), w.Operator.Log)
		}
	})
}
