package informers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// request is one that a set made. A review has the resource and the namespace that it is about.
type request struct {
	verb, resource, namespace string
	limit                     string // of a list
	code                      int
	at                        time.Time
}

// wire counts the requests of a set, and can cut or break them.
type wire struct {
	mu       sync.Mutex
	requests []request
	streams  map[*body]request
	broken   bool // requests lose their token
	refused  bool // reviews are refused
	down     bool // nothing answers
	lists    int  // lists under way
	most     int  // the most lists that were under way at a time
}

func newWire() *wire { return &wire{streams: map[*body]request{}} }

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper { return &counter{w, next} }

type counter struct {
	wire *wire
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	what, err := read(r)
	if err != nil {
		return nil, err
	}
	w := c.wire
	w.mu.Lock()
	if w.broken {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer invalid")
	}
	initial := !w.down && (what.verb == "list" || r.URL.Query().Get("sendInitialEvents") == "true")
	if initial {
		w.lists++
		w.most = max(w.most, w.lists)
	}
	refused, down := w.refused && what.verb == "review", w.down
	w.mu.Unlock()
	if down {
		return nil, syscall.ECONNREFUSED
	}
	if refused {
		return forbidden(r), nil
	}
	answer, err := c.next.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if initial {
		w.lists--
	}
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			w.requests = append(w.requests, what)
		}
		return nil, err
	}
	what.code, what.at = answer.StatusCode, time.Now()
	w.requests = append(w.requests, what)
	if what.verb == "watch" && answer.StatusCode == http.StatusOK {
		b := &body{ReadCloser: answer.Body, wire: w}
		answer.Body, w.streams[b] = b, what
	}
	return answer, nil
}

// read tells what a request asks for.
func read(r *http.Request) (request, error) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	skip := 2
	if path[0] == "apis" {
		skip = 3
	}
	if len(path) <= skip {
		return request{verb: "discover", resource: strings.Join(path, "/")}, nil
	}
	path = path[skip:]
	what := request{verb: "list", limit: r.URL.Query().Get("limit")}
	if r.URL.Query().Get("watch") != "" {
		what.verb = "watch"
	}
	if path[0] == "namespaces" && len(path) > 2 {
		what.namespace, path = path[1], path[2:]
	}
	what.resource = path[0]
	if what.resource != "selfsubjectaccessreviews" && what.resource != "selfsubjectrulesreviews" {
		return what, nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return what, err
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	review, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	switch review := review.(type) {
	case *authorizationv1.SelfSubjectRulesReview: // of all rights in a namespace
		return request{verb: "review", namespace: review.Spec.Namespace}, nil
	case *authorizationv1.SelfSubjectAccessReview:
		about := review.Spec.ResourceAttributes
		return request{verb: "review", resource: about.Resource, namespace: about.Namespace}, nil
	}
	return what, err
}

// body is an open stream.
type body struct {
	io.ReadCloser
	wire *wire
	cut  atomic.Bool
}

// Read implements io.Reader. A stream that was cut ends as one does that the server closes.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.cut.Load() {
		err = io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.wire.mu.Lock()
	delete(b.wire.streams, b)
	b.wire.mu.Unlock()
	return b.ReadCloser.Close()
}

// cut closes all streams.
func (w *wire) cut() {
	w.mu.Lock()
	var streams []*body
	for b := range w.streams {
		streams = append(streams, b)
	}
	w.mu.Unlock()
	for _, b := range streams {
		b.cut.Store(true)
		_ = b.ReadCloser.Close()
	}
}

func (w *wire) setBroken(broken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = broken
}

// refuseReviews answers reviews as a cluster without the binding system:basic-user does.
func (w *wire) refuseReviews() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = true
}

func forbidden(r *http.Request) *http.Response {
	text := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"reviews are forbidden","code":403}`
	return &http.Response{
		StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": []string{"application/json"}},
		Body: io.NopCloser(strings.NewReader(text)), Request: r,
	}
}

func (w *wire) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

func (r request) matches(verb, resource, namespace string) bool {
	return (verb == "" || verb == r.verb) && (resource == "" || resource == r.resource) && (namespace == "" || namespace == r.namespace)
}

// count counts requests; an empty argument matches all.
func (w *wire) count(verb, resource, namespace string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.requests {
		if r.matches(verb, resource, namespace) {
			n++
		}
	}
	return n
}

// mostWithin is the most requests of a kind about a namespace that were answered within a time of that length.
func (w *wire) mostWithin(span time.Duration, verb, namespace string) (most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var recent []time.Time
	for _, r := range w.requests {
		if r.matches(verb, "", namespace) {
			recent = append(recent, r.at)
			recent = slices.DeleteFunc(recent, func(at time.Time) bool { return r.at.Sub(at) >= span })
			most = max(most, len(recent))
		}
	}
	return most
}

// limits are the values of the parameter limit in the lists of a resource.
func (w *wire) limits(resource, namespace string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, r := range w.requests {
		if r.matches("list", resource, namespace) {
			all = append(all, r.limit)
		}
	}
	return all
}

// rests waits until no matching request was sent for a while, and returns how many there were.
func (w *wire) rests(verb, resource, namespace string) int {
	GinkgoHelper()
	Eventually(func() time.Duration {
		w.mu.Lock()
		defer w.mu.Unlock()
		var last time.Time
		for _, r := range w.requests {
			if r.matches(verb, resource, namespace) {
				last = r.at
			}
		}
		return time.Since(last)
	}).Should(BeNumerically(">", 3*time.Second))
	return w.count(verb, resource, namespace)
}

// counting is count for Eventually and Consistently.
func (w *wire) counting(verb, resource, namespace string) func() int {
	return func() int { return w.count(verb, resource, namespace) }
}

// open counts open streams.
func (w *wire) open(resource, namespace string) func() int {
	return func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		n := 0
		for _, r := range w.streams {
			if r.matches("watch", resource, namespace) {
				n++
			}
		}
		return n
	}
}

func (w *wire) mostLists() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}
