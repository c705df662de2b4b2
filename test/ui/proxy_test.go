package ui_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// request is one request of the plugin to the API server.
type request struct {
	At          time.Time
	Method, URI string
	Header      http.Header
	Body        string
}

// isReview reports whether the request asks a question: the API server stores no review.
func (r request) isReview() bool { return strings.Contains(r.URI, "reviews") }

// isWrite reports whether the request asks for a change that is kept.
func (r request) isWrite() bool {
	return r.Method != http.MethodGet && !r.isReview() && !strings.Contains(r.URI, "dryRun=All")
}

// How a proxy answers.
const (
	passes int32 = iota
	isAway
	knowsNobody
)

// proxy stands between a plugin and the API server. It records the requests, and may pretend that the server is away. mu guards
// requests and watches.
type proxy struct {
	server *httptest.Server
	state  atomic.Int32

	mu       sync.Mutex
	requests []request
	watches  []*watched
}

// watched is the answer to a watch.
type watched struct {
	io.ReadCloser
	ended atomic.Bool
}

// Read implements io.Reader. It ends an ended answer as the API server does when the time of a watch is over.
func (w *watched) Read(into []byte) (int, error) {
	n, err := w.ReadCloser.Read(into)
	if w.ended.Load() {
		err = io.EOF
	}
	return n, err
}

func (c *cluster) newProxy(t testing.TB) *proxy {
	t.Helper()
	config := rest.AnonymousClientConfig(c.Config(controlplane.Admin))
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	reverse := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(answer *http.Response) error {
			p.note(answer)
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p.state.Load() {
		case isAway:
			p.record(request{At: time.Now(), Method: r.Method, URI: r.RequestURI, Header: r.Header})
			panic(http.ErrAbortHandler)
		case knowsNobody:
			p.record(request{At: time.Now(), Method: r.Method, URI: r.RequestURI, Header: r.Header})
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		r = r.WithContext(withBody(r.Context(), string(body)))
		reverse.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// note records a request whose answer begins.
func (p *proxy) note(answer *http.Response) {
	r := answer.Request
	p.record(request{At: time.Now(), Method: r.Method, URI: r.URL.RequestURI(), Header: r.Header.Clone(), Body: bodyOf(r.Context())})
	if r.URL.Query().Has("watch") {
		w := &watched{ReadCloser: answer.Body}
		answer.Body = w
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watches = append(p.watches, w)
	}
}

// endWatches ends the open watches.
func (p *proxy) endWatches() {
	p.mu.Lock()
	open := p.watches
	p.watches = nil
	p.mu.Unlock()
	for _, w := range open {
		w.ended.Store(true)
		_ = w.Close()
	}
}

func (p *proxy) record(r request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
}

// all returns the requests so far.
func (p *proxy) all() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]request{}, p.requests...)
}

// writes returns the requests so far that asked for a change.
func (p *proxy) writes() []request {
	var writes []request
	for _, r := range p.all() {
		if r.isWrite() {
			writes = append(writes, r)
		}
	}
	return writes
}

// become has the proxy answer in another way, and closes the open connections.
func (p *proxy) become(state int32) {
	p.state.Store(state)
	p.server.CloseClientConnections()
}
