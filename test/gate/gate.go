// Package gate stands between an operator and the API server, so that a case can hold requests back at a chosen moment and lose
// answers on their way.
package gate

import (
	"bytes"
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
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// Gate passes requests on to the API server.
type Gate struct {
	server *httptest.Server

	mu     sync.Mutex
	hold   func(*http.Request) bool
	lose   func(*http.Request) bool
	script func(Request) Fault
	open   chan struct{} // closed when held requests may go on
	held   int
	frozen func(*http.Request) bool
	thawed chan struct{} // closed when the watches that are frozen may go on
	gap    chan struct{} // the channel thawed of the watches that must end and lose their events
	// expired are the watches that have lost events. The next request that wants to continue such a watch gets the answer 410.
	expired map[string]bool
	late    time.Duration // the delay of a watch that begins before lagEnd
	lagEnd  time.Time
	lags    func(*http.Request) bool // whether a watch is delayed
}

// Request is a request of the operator with its body.
type Request struct {
	*http.Request
	Body []byte
}

// Fault is what happens to a request. The zero value passes it on.
type Fault struct {
	// Code is an HTTP status that the gate answers in place of the API server, with RetryAfter in seconds unless that is empty.
	Code       int
	RetryAfter string
	// AnswerCode is an HTTP status that replaces the API server's answer.
	AnswerCode int
	// LoseRequest breaks the connection before the API server sees the request, LoseAnswer after it has answered.
	LoseRequest, LoseAnswer bool
	// Twice sends the request twice; the second answer is the one that is delivered.
	Twice bool
	// Delay holds the answer back.
	Delay time.Duration
	// Then is called when the API server has answered, or before the connection is broken.
	Then func()
	// Ends is the time after which the answer to a watch ends, as the API server would end it.
	Ends time.Duration
}

// faultKey is where the context of a request has its Fault.
type faultKey struct{}

// New returns a gate between the operator and the API server of w. The gate lets all requests through until another method says otherwise.
func New(w *devcluster.World) *Gate {
	ginkgo.GinkgoHelper()
	config := w.Config(controlplane.Operator)
	target, err := url.Parse(config.Host)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	g := &Gate{open: make(chan struct{}), thawed: make(chan struct{}), expired: map[string]bool{}}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches come one event at a time
		ModifyResponse: func(answer *http.Response) error {
			fault, _ := answer.Request.Context().Value(faultKey{}).(Fault)
			if fault.Then != nil {
				fault.Then()
			}
			if fault.LoseAnswer || g.loses(answer.Request) {
				return errors.New("lost")
			}
			fault.spoil(answer)
			if answer.Request.URL.Query().Get("watch") == "true" {
				answer.Body = &stream{ReadCloser: g.delay(answer), gate: g, of: answer.Request}
			}
			return nil
		},
		ErrorLog:     log.New(io.Discard, "", 0), // to break off answers is the purpose of a gate
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open := g.stops(r); open != nil {
			select {
			case <-open:
			case <-r.Context().Done():
				g.leaves(open)
			}
		}
		if g.expires(r) {
			tooOld(w)
			return
		}
		if r = g.judge(w, r); r != nil {
			if again := repeated(r); again != nil {
				proxy.ServeHTTP(httptest.NewRecorder(), again)
			}
			proxy.ServeHTTP(w, r)
		}
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

// judge lets the script decide about a request. It returns the request that is passed on, nil if it has answered the request itself.
func (g *Gate) judge(w http.ResponseWriter, r *http.Request) *http.Request {
	g.mu.Lock()
	script := g.script
	g.mu.Unlock()
	if script == nil {
		return r
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	fault := script(Request{Request: r, Body: body})
	switch {
	case fault.LoseRequest:
		if fault.Then != nil {
			fault.Then()
		}
		panic(http.ErrAbortHandler)
	case fault.Code != 0:
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		http.Error(w, http.StatusText(fault.Code), fault.Code)
		return nil
	}
	ctx := context.WithValue(r.Context(), faultKey{}, fault)
	if r.Method != http.MethodGet {
		ctx = context.WithoutCancel(ctx) // a write that came so far reaches the API server, even if the operator dies
	}
	if fault.Ends > 0 {
		ended, cancel := context.WithCancel(ctx)
		time.AfterFunc(fault.Ends, cancel)
		ctx = ended
	}
	return r.WithContext(ctx)
}

// spoil delays an answer, or replaces it.
func (f Fault) spoil(answer *http.Response) {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-answer.Request.Context().Done():
		}
	}
	if f.AnswerCode != 0 {
		_ = answer.Body.Close()
		answer.StatusCode, answer.Status = f.AnswerCode, http.StatusText(f.AnswerCode)
		answer.Header = http.Header{"Content-Type": {"text/plain"}}
		answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(answer.Status)), int64(len(answer.Status))
	}
}

// repeated returns a copy of a request if that is to be sent twice, else nil.
func repeated(r *http.Request) *http.Request {
	fault, _ := r.Context().Value(faultKey{}).(Fault)
	if !fault.Twice {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	again := r.Clone(context.WithValue(r.Context(), faultKey{}, Fault{}))
	r.Body, again.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	return again
}

// Script lets the function called of decide about every request; nil ends that. The function is called for many requests at once.
func (g *Gate) Script(of func(Request) Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.script = of
}

// stream is the answer to a watch.
type stream struct {
	io.ReadCloser
	gate *Gate
	of   *http.Request
}

// Read holds back what comes while the watch is frozen. A watch whose time is over ends without an error.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if s.of.Context().Err() != nil {
		return 0, io.EOF
	}
	s.gate.mu.Lock()
	frozen, thawed := s.gate.frozen != nil && s.gate.frozen(s.of), s.gate.thawed
	s.gate.mu.Unlock()
	if !frozen {
		return n, err
	}
	select {
	case <-thawed:
	case <-s.of.Context().Done():
	}
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if s.gate.gap == thawed {
		s.gate.expired[watchOf(s.of)] = true
		return 0, io.EOF
	}
	return n, err
}

// Freeze holds the events of these watches back until Thaw or ThawWithGap.
func (g *Gate) Freeze(these func(*http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen == nil {
		g.thawed = make(chan struct{})
	}
	g.frozen = these
}

// Thaw delivers the events that Freeze held back.
func (g *Gate) Thaw() { g.thaw(false) }

// ThawWithGap ends the watches that have events which Freeze held back. Those events are lost: where such a watch wants to go on, the
// answer is 410.
func (g *Gate) ThawWithGap() { g.thaw(true) }

func (g *Gate) thaw(gap bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen == nil {
		return
	}
	if gap {
		g.gap = g.thawed
	}
	g.frozen = nil
	close(g.thawed)
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

// leaves no longer counts a request as held back, because its client has given it up.
func (g *Gate) leaves(open chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == open {
		g.held--
	}
}

// Stopped counts the requests that are held back, or were when Release was called.
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

// OfSecrets reports whether a request writes a Secret.
func OfSecrets(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.Contains(r.URL.Path+"/", "/secrets/")
}

// Release lets all requests go on that are held back.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold = nil
	close(g.open)
}

// releaseAnyway ends all that the gate does to requests, for a case that has failed before it did so itself: the operator ends only when
// its requests have ended.
func (g *Gate) releaseAnyway() {
	g.mu.Lock()
	holds := g.hold != nil
	g.mu.Unlock()
	if holds {
		g.Release()
	}
	g.Thaw()
	g.Script(nil)
}

// LoseAnswers lets the API server carry these requests out, and breaks the connection in place of an answer.
func (g *Gate) LoseAnswers(of func(*http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose = of
}

// Disconnect breaks all connections of the operator: watches begin again.
func (g *Gate) Disconnect() { g.server.CloseClientConnections() }

// Kubeconfig writes a file with the operator's access to w through the gate, and returns its path.
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
	g.StartOperatorWith(ctx, w, devcluster.OperatorOptions{Config: configuration})
}

// StartOperatorWith starts the operator of w behind the gate, with those options; access, folder and port of its webhooks are filled in.
func (g *Gate) StartOperatorWith(ctx context.Context, w *devcluster.World, options devcluster.OperatorOptions) {
	ginkgo.GinkgoHelper()
	options.Kubeconfig, options.Dir, options.WebhookPort = g.Kubeconfig(w), filepath.Join(w.Dir, "operator"), w.WebhookPort
	var err error
	w.Operator, err = devcluster.StartOperator(ctx, options)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	// The operator ends before the gate closes: if it connected again meanwhile, it would keep the gate open.
	ginkgo.DeferCleanup(func() {
		g.releaseAnyway()
		if w.Operator.Process().Running() {
			code, err := w.Operator.Stop()
			gomega.Expect(err).NotTo(gomega.HaveOccurred())
			gomega.Expect(code).To(gomega.BeZero(), w.Operator.Log)
		}
	})
}
