package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/warren-tenancy/warren/internal/operator"
	"github.com/warren-tenancy/warren/test/whole/api"
)

// Operator is the user that the operator is.
const Operator = "system:serviceaccount:warren-system:warren-controller-manager"

// state is how far a Process is in its life.
type state int

const (
	running state = iota
	// dying: killed, but its caches have not synced yet. It writes nothing. controller-runtime's runnableGroup.Start never becomes idle if
	// its context ends before (controller-runtime 3440), and virtual time would stand still.
	dying
	stopping // it was told to end
	dead     // nothing of it reaches the API server
)

// Process is one process of the operator.
type Process struct {
	Name string
	// Started is when it was started.
	Started time.Time

	sim    *Sim
	life   atomic.Int32 // a state
	ctx    context.Context
	cancel context.CancelFunc
	setUp  chan struct{}   // closed when Setup has returned
	leads  <-chan struct{} // closed when it has the Lease
	synced chan struct{}   // closed when the caches have
	done   chan struct{}   // closed when Start has returned
	err    error
	// unlisted are resources whose lists fail until a time: an API server that has lost one of etcd's shards.
	unlisted      string
	ending        time.Time // when its context was cancelled
	unlistedUntil time.Time
}

// Start starts a process, and returns when it is set up or has ended.
func (s *Sim) Start() *Process {
	s.starts++
	p := &Process{
		Name: fmt.Sprintf("operator-%d", s.starts), Started: time.Now(), sim: s,
		setUp: make(chan struct{}), synced: make(chan struct{}), done: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	s.processes = append(s.processes, p)
	// watchset and others register metrics once in a registry.
	metrics.Registry = prometheus.NewRegistry()
	go p.run()
	s.RunUntil(func() bool { return isClosed(p.setUp) || isClosed(p.done) }, time.Minute)
	s.log(p.Name, "starts", "")
	return p
}

func (p *Process) run() {
	defer close(p.done)
	// What ends the process by itself, such as the loss of the Lease, ends this goroutine or returns an error here.
	err := p.operate()
	if p.ctx.Err() == nil && err != nil {
		p.err = err
	}
}

func (p *Process) operate() error {
	o := operator.Options{
		OperatorNamespace: "warren-system", LeaderElect: true, MetricsAddress: "0", HealthAddress: "0", MetricsSecure: false,
		Access: &rest.Config{Host: "http://model", Transport: p, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		EndProcess: func() {
			p.life.Store(int32(dead))
			p.cancel()
			runtime.Goexit()
		},
	}
	o.Webhooks.Port, o.Webhooks.Certificates = 9443, "self"
	file := p.sim.settings.File
	mgr, err := operator.NewManager(p.ctx, &o, file.Config, "warren/whole")
	if err != nil {
		return err
	}
	timing := operator.DefaultTiming()
	timing.MemoryLook = 1000 * time.Hour // it would collect the garbage of the whole test
	if err := operator.Setup(p.ctx, mgr, file, &o, timing); err != nil {
		return err
	}
	p.leads = mgr.Elected()
	close(p.setUp)
	go func() {
		if mgr.GetCache().WaitForCacheSync(p.ctx) {
			close(p.synced)
		}
	}()
	return mgr.Start(p.ctx)
}

func (p *Process) state() state { return state(p.life.Load()) }

// Stop tells the process to end, as SIGTERM does.
func (p *Process) Stop() {
	p.sim.log(p.Name, "is told to end", "")
	p.end(stopping)
}

// Kill ends the process, as SIGKILL does. Requests that it has sent may still be carried out.
func (p *Process) Kill() {
	p.sim.log(p.Name, "is killed", "")
	p.end(dead)
}

func (p *Process) end(as state) {
	if p.state() == dead {
		return
	}
	if !isClosed(p.synced) && !isClosed(p.done) {
		p.life.Store(int32(dying))
		return
	}
	p.life.Store(int32(as))
	p.ending = time.Now()
	p.cancel()
}

// Ended reports whether the process does nothing any more, and why it ended by itself.
func (p *Process) Ended() (bool, error) { return isClosed(p.done) || p.state() == dead, p.err }

// Runs reports whether the process works, or is about to.
func (p *Process) Runs() bool { return p.state() == running && !isClosed(p.done) }

// IsSynced reports whether its caches have synced.
func (p *Process) IsSynced() bool { return isClosed(p.synced) }

// Leads reports whether it works, has the Lease, and knows the cluster.
func (p *Process) Leads() bool {
	return p.Runs() && p.IsSynced() && isClosed(p.setUp) && isClosed(p.leads)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var errReset = fmt.Errorf("read tcp 10.0.0.1: %w", syscall.ECONNRESET)

// RoundTrip implements http.RoundTripper: the request waits until the scheduler answers it.
func (p *Process) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	request := api.Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Body: body, ContentType: r.Header.Get("Content-Type"),
		Accept: r.Header.Get("Accept"), User: Operator, Agent: r.Header.Get("User-Agent")}
	if p.state() == dead {
		return nil, errReset
	}
	// Discovery is asked for under locks, and who waits for a lock does not let virtual time pass.
	if answer, isDiscovery := p.sim.Server.Discover(r.URL.Path); isDiscovery {
		return httpResponse(r, answer.Code, io.NopCloser(bytes.NewReader(answer.Body))), nil
	}
	if p.state() == dying && r.Method != http.MethodGet {
		return nil, errReset
	}
	c := &call{process: p, request: request, answer: make(chan answer, 1), sent: time.Now()}
	p.sim.enqueue(c)
	select {
	case a := <-c.answer:
		if a.err != nil {
			return nil, a.err
		}
		if s, isWatch := a.body.(*stream); isWatch { // as a connection does, a watch ends with the context of its request
			context.AfterFunc(r.Context(), func() { _ = s.Close() })
		}
		response := httpResponse(r, a.code, a.body)
		response.Header.Set("Date", a.date)
		response.Header.Set("Audit-Id", "model")
		return response, nil
	case <-r.Context().Done():
		c.giveUp()
		return nil, r.Context().Err()
	}
}

func httpResponse(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: fmt.Sprint(code, " ", http.StatusText(code)), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1, Request: r,
	}
}
