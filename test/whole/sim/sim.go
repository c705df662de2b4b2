// Package sim runs the whole operator in virtual time. Every request waits; when everything in the bubble is idle, the seed picks what
// happens next: the answer of one request, an event of one watch, a step of a controller of Kubernetes, or a fault.
package sim

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/warren-tenancy/warren/internal/operator"
	"github.com/warren-tenancy/warren/test/whole/api"
	"github.com/warren-tenancy/warren/test/whole/plane"
)

// Settings are what a cluster begins with.
type Settings struct {
	File    *operator.ConfigFile
	Objects []*unstructured.Unstructured
	Seed    uint64
	// Log gets a line for each thing that happens; nil: nobody reads it.
	Log func(line string)
}

// Sim is a cluster in virtual time.
type Sim struct {
	Server *api.Server
	Faults Faults
	Counts Counts
	// Writes are those of the operator that may change something.
	Writes []Write
	Begun  time.Time
	// AfterStep is called after each step; nil: nobody looks.
	AfterStep func()
	// IsClose is whether AfterStep is called each half second at least, though nothing happens.
	IsClose bool

	settings  Settings
	plane     *plane.Plane
	rand      *rand.Rand
	processes []*Process
	starts    int
	watches   []*openWatch
	late      []*call
	killAt    int  // see KillAtSudo
	counts    bool // whether the writes until then are counted
	chores    []*chore
	troubled  time.Time  // when something last was wrong with what the operator needs
	knows     int64      // see Knowing
	last      *api.Event // of the request that is carried out

	mu      sync.Mutex // guards pending
	pending []*call
	arrived chan struct{}
}

// Counts are what a run has cost.
type Counts struct{ Requests, Events, Faults, Starts, Questions, Granted int }

// Write is a write of the operator that was carried out or refused. Writes of Leases and Events, and reviews, are none.
type Write struct {
	At           time.Time
	Process      string
	Method, Path string
	Body         string
	Code         int
	// Change is what the write has changed, or the API server's answer.
	Change  string
	changes bool
}

// HasChanged reports whether the write has changed an object.
func (w Write) HasChanged() bool { return w.Code < 400 && w.changes }

// String describes the write in one line.
func (w Write) String() string {
	return fmt.Sprintf("%s %s %s %s -> %d: %.3000s", w.At.Format("15:04:05.000"), w.Process, w.Method, w.Path, w.Code, w.Change)
}

// call is a request that waits.
type call struct {
	process   *Process
	request   api.Request
	answer    chan answer
	sent      time.Time
	notBefore time.Time
	// knew is the first revision that a watch of its process had not shown when the request was sent.
	knew int64

	mu      sync.Mutex
	givenUp bool
}

type answer struct {
	code int
	date string // by the API server's clock
	body io.ReadCloser
	err  error
}

func (c *call) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.givenUp = true
}

func (c *call) isGivenUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.givenUp
}

type openWatch struct {
	*api.Watch
	process *Process
	stream  *stream
	held    time.Time // the watch shows nothing before
}

// chore is what another client does again and again, until it returns true: then it is done.
type chore struct {
	name string
	due  time.Time
	wait time.Duration
	do   func() (done bool)
}

// New returns a cluster in which nothing runs yet. It must be made in the bubble.
func New(settings Settings) *Sim {
	s := &Sim{
		Server: api.NewServer(settings.Objects), settings: settings, rand: rand.New(rand.NewPCG(settings.Seed, 1)),
		arrived: make(chan struct{}, 1), Begun: time.Now(),
	}
	s.plane = plane.New(s.Server)
	s.Server.Observe(func(e api.Event) { s.last = &e })
	return s
}

func (s *Sim) log(who, what, detail string) {
	if s.settings.Log != nil {
		s.settings.Log(fmt.Sprintf("%10.3f %-12s %-9s %.1000s", time.Since(s.Begun).Seconds(), who, what, detail))
	}
}

// Log notes what somebody does.
func (s *Sim) Log(who, what string) { s.log(who, what, "") }

func (s *Sim) enqueue(c *call) {
	s.mu.Lock()
	s.pending = append(s.pending, c)
	s.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// Repeat has do called now and again, with pauses that double, until it returns true.
func (s *Sim) Repeat(name string, do func() (done bool)) {
	s.chores = append(s.chores, &chore{name: name, due: time.Now(), wait: 100 * time.Millisecond, do: do})
}

// step is one thing that may happen.
type step struct {
	name string
	do   func()
}

// steps returns what may happen now, in an order that depends on nothing but the state.
func (s *Sim) steps() []step {
	now := time.Now()
	var steps []step
	s.mu.Lock()
	s.pending = slices.DeleteFunc(s.pending, func(c *call) bool { return c.isGivenUp() })
	for _, c := range s.pending {
		if c.knew == 0 {
			c.knew = s.behind(c.process)
		}
		if !now.Before(c.notBefore) {
			steps = append(steps, step{c.request.Path + c.request.Method + c.process.Name + string(c.request.Body), func() { s.serve(c) }})
		}
	}
	s.mu.Unlock()
	for _, c := range s.late {
		if !now.Before(c.notBefore) {
			steps = append(steps, step{"late " + c.request.Path, func() { s.serveLate(c) }})
		}
	}
	for _, w := range s.watches {
		if !now.Before(w.held) && w.Due() || w.process.state() == dead || w.stream.isClosed() || !now.Before(w.Ends) {
			steps = append(steps, step{"watch", func() { s.deliver(w) }})
		}
	}
	for _, task := range s.plane.Tasks() {
		steps = append(steps, step{task.Name, func() {
			s.log("kubernetes", "does", task.Name)
			task.Do()
		}})
	}
	for _, c := range s.chores {
		if !now.Before(c.due) {
			steps = append(steps, step{c.name, func() { s.doChore(c) }})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.name, b.name) })
	return steps
}

func (s *Sim) doChore(c *chore) {
	if c.do() {
		s.chores = slices.DeleteFunc(s.chores, func(each *chore) bool { return each == c })
		return
	}
	c.due = time.Now().Add(c.wait)
	c.wait = min(2*c.wait, 5*time.Minute)
}

// behind returns the first revision that a watch of the process has not shown.
func (s *Sim) behind(p *Process) int64 {
	first := s.Server.Revision() + 1
	for _, w := range s.watches {
		if w.process == p {
			first = min(first, w.Behind())
		}
	}
	return first
}

// Step lets one thing happen, or lets virtual time pass until something may happen, at most until a time. It reports whether anything
// happened.
func (s *Sim) Step(until time.Time) bool {
	defer s.look()
	synctest.Wait()
	s.reap()
	steps := s.steps()
	if len(steps) == 0 {
		select {
		case <-s.arrived:
		case <-time.After(s.pause(until)):
		}
		return false
	}
	steps[s.rand.IntN(len(steps))].do()
	// Each step takes a moment, so that a loop without a pause does not stop the clock.
	time.Sleep(time.Duration(s.rand.IntN(2000)) * time.Microsecond)
	return true
}

// pause returns how long nothing can happen by itself.
func (s *Sim) pause(until time.Time) time.Duration {
	next := until
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	s.mu.Lock()
	for _, c := range s.pending {
		sooner(c.notBefore)
	}
	s.mu.Unlock()
	for _, c := range s.late {
		sooner(c.notBefore)
	}
	for _, w := range s.watches {
		sooner(w.Ends)
		if w.Due() {
			sooner(w.held)
		}
	}
	for _, c := range s.chores {
		sooner(c.due)
	}
	if s.IsClose {
		sooner(time.Now().Add(time.Second / 2))
	}
	if due := s.plane.Due(); !due.IsZero() {
		sooner(time.Now().Add(due.Sub(s.Server.Now())))
	}
	return max(time.Until(next), time.Millisecond)
}

// Run lets so much virtual time pass.
func (s *Sim) Run(d time.Duration) {
	s.RunUntil(func() bool { return false }, d)
}

// RunUntil runs until something holds, and reports whether it did so in time.
func (s *Sim) RunUntil(holds func() bool, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); s.Step(end) {
		if synctest.Wait(); holds() {
			return true
		}
	}
	return holds()
}

// stopping takes at most this long: then the kubelet kills.
const grace = 30 * time.Second

// reap ends processes that were killed before their caches had synced, once these have, and cuts off what is dead.
func (s *Sim) reap() {
	for _, p := range s.processes {
		switch {
		case p.state() == dying && (p.IsSynced() || isClosed(p.done)):
			p.end(dead)
		case p.state() == stopping && time.Since(p.ending) > grace:
			p.life.Store(int32(dead))
		}
		if p.state() == dead {
			s.abandon(p)
		}
	}
}

// Processes returns those that work, the oldest first.
func (s *Sim) Processes() []*Process {
	return slices.DeleteFunc(slices.Clone(s.processes), func(p *Process) bool { return !p.Runs() })
}

// deliver sends what a watch has, or ends it.
func (s *Sim) deliver(w *openWatch) {
	switch {
	case w.process.state() == dead || w.stream.isClosed():
		s.endWatch(w, io.ErrUnexpectedEOF)
	case w.Due():
		s.Counts.Events++
		w.stream.send(w.Next(1 + s.rand.IntN(50)))
	default:
		s.endWatch(w, io.EOF)
	}
}

func (s *Sim) endWatch(w *openWatch, err error) {
	w.stream.end(err)
	s.watches = slices.DeleteFunc(s.watches, func(each *openWatch) bool { return each == w })
}

// isWrite reports whether a request may change something that counts.
func isWrite(r api.Request) bool {
	return r.Method != "GET" && !strings.Contains(r.Path, "/leases") && !strings.Contains(r.Path, "/events") &&
		!strings.HasSuffix(r.Path, "reviews")
}

// Starts is how many processes were started.
func (s *Sim) Starts() int { return s.starts }

// CloseAll ends every process, so that its goroutines end.
func (s *Sim) CloseAll() {
	for _, p := range s.processes {
		p.end(dead)
	}
	s.RunUntil(func() bool {
		return !slices.ContainsFunc(s.processes, func(p *Process) bool { return p.state() == dying })
	}, 5*time.Minute)
}

// Add adds what another run has cost.
func (c *Counts) Add(other Counts) {
	c.Requests += other.Requests
	c.Events += other.Events
	c.Faults += other.Faults
	c.Starts += other.Starts
	c.Questions += other.Questions
	c.Granted += other.Granted
}
