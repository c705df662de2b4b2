package sim

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/test/whole/api"
)

// Faults are how often, of a thousand requests, something goes wrong.
type Faults struct {
	Refused, Reset, Lost, Slow int
}

// serve answers a request.
func (s *Sim) serve(c *call) {
	s.mu.Lock()
	s.pending = slices.DeleteFunc(s.pending, func(each *call) bool { return each == c })
	s.mu.Unlock()
	s.Counts.Requests++
	r, p := c.request, c.process
	if p.unlisted != "" && strings.HasSuffix(r.Path, "/"+p.unlisted) && r.Method == http.MethodGet && time.Now().Before(p.unlistedUntil) {
		s.answer(c, api.Trouble(http.StatusInternalServerError), "its first list fails")
		return
	}
	if slices.Contains([]string{"leases", "selfsubjectreviews"}, lastPart(r.Path)) || strings.Contains(r.Path, "/leases/") {
		s.answer(c, s.do(c), "")
		return
	}
	switch n := s.rand.IntN(1000); {
	case n < s.Faults.Refused:
		codes := []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}
		s.Counts.Faults++
		s.answer(c, api.Trouble(codes[s.rand.IntN(len(codes))]), "a fault")
	case n < s.Faults.Refused+s.Faults.Reset:
		s.Counts.Faults++
		s.log(p.Name, "reset", r.Method+" "+r.Path)
		c.answer <- answer{err: errReset}
	case n < s.Faults.Refused+s.Faults.Reset+s.Faults.Lost && r.Method != http.MethodGet:
		s.Counts.Faults++
		done := s.do(c)
		s.logCall(c, done.Code, "and the answer is lost")
		c.answer <- answer{err: errReset}
	case n < s.Faults.Refused+s.Faults.Reset+s.Faults.Lost+s.Faults.Slow && c.notBefore.IsZero():
		s.Counts.Faults++
		c.notBefore = time.Now().Add(time.Duration(s.rand.IntN(4000)) * time.Millisecond)
		s.enqueue(c)
	default:
		s.answer(c, s.do(c), "")
	}
}

func lastPart(path string) string { return path[strings.LastIndex(path, "/")+1:] }

// do carries out a request, and records it if it is a write.
func (s *Sim) do(c *call) api.Response {
	s.knows, s.last = c.knew, nil
	done := s.Server.Do(c.request)
	s.knows = 0
	if isWrite(c.request) {
		change := string(done.Body)
		if s.last != nil {
			change = describeChange(*s.last)
		}
		s.Writes = append(s.Writes, Write{At: time.Now(), Process: c.process.Name, Method: c.request.Method, Path: c.request.Path,
			Body: string(c.request.Body), Code: done.Code, Change: change, changes: s.last != nil})
		s.countDown(c)
	}
	return done
}

// KillAtSudo kills the process that does the nth write for sudo on request, from the next startTime on.
func (s *Sim) KillAtSudo(n int) { s.killAt, s.counts = n, false }

func (s *Sim) countDown(c *call) {
	s.counts = s.counts || strings.Contains(string(c.request.Body), `"startTime":"`)
	if s.killAt == 0 || !s.counts || !strings.Contains(c.request.Path, "sudo") {
		return
	}
	if s.killAt--; s.killAt == 0 {
		c.process.Kill()
	}
}

// Knowing returns, while a request of the operator is carried out, the first revision that the operator did not know when it sent the
// request; 0 while something else happens.
func (s *Sim) Knowing() int64 { return s.knows }

func (s *Sim) answer(c *call, done api.Response, why string) {
	s.logCall(c, done.Code, why)
	date := s.Server.Now().UTC().Format(http.TimeFormat)
	if done.Watch == nil {
		c.answer <- answer{code: done.Code, date: date, body: io.NopCloser(bytes.NewReader(done.Body))}
		return
	}
	w := &openWatch{Watch: done.Watch, process: c.process, stream: newStream()}
	s.watches = append(s.watches, w)
	c.answer <- answer{code: done.Code, date: date, body: w.stream}
}

func (s *Sim) logCall(c *call, code int, why string) {
	if s.settings.Log == nil {
		return
	}
	text := c.request.Path
	if c.request.Method == http.MethodGet && len(c.request.Query) > 0 {
		text += "?" + c.request.Query.Encode()
	}
	s.log(c.process.Name, c.request.Method, strings.TrimSpace(text+" -> "+http.StatusText(code)+" "+why+" "+string(c.request.Body)))
}

// abandon cuts a process off. Each of its writes that wait is carried out later, or never.
func (s *Sim) abandon(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(c *call) bool {
		if c.process != p {
			return false
		}
		if isWrite(c.request) && s.rand.IntN(2) == 0 {
			c.notBefore = time.Now().Add(time.Duration(s.rand.IntN(10000)) * time.Millisecond)
			s.late = append(s.late, c)
		}
		c.answer <- answer{err: errReset}
		return true
	})
}

// serveLate carries out what a dead process had sent.
func (s *Sim) serveLate(c *call) {
	s.late = slices.DeleteFunc(s.late, func(each *call) bool { return each == c })
	s.Counts.Requests++
	done := s.do(c)
	s.logCall(c, done.Code, "late, of a dead process")
}

// BreakWatch ends one watch of the operator with an error.
func (s *Sim) BreakWatch() {
	if len(s.watches) > 0 {
		w := s.watches[s.rand.IntN(len(s.watches))]
		s.log(w.process.Name, "loses", "its watch of "+w.Kind.Resource)
		s.endWatch(w, io.ErrUnexpectedEOF)
		s.troubled = time.Now()
	}
}

// HoldWatch lets one watch of the operator show nothing for a while.
func (s *Sim) HoldWatch(d time.Duration) {
	if len(s.watches) > 0 {
		w := s.watches[s.rand.IntN(len(s.watches))]
		w.held = time.Now().Add(d)
		s.log(w.process.Name, "lags", "with its watch of "+w.Kind.Resource+" for "+d.String())
	}
}

// Unlist has the lists of one resource fail for a process, for a time.
func (p *Process) Unlist(resource string, d time.Duration) {
	p.unlisted, p.unlistedUntil = resource, time.Now().Add(d)
	p.sim.log(p.Name, "can't list", resource+" for "+d.String())
}

// EndFaults lets everything work from now on.
func (s *Sim) EndFaults() {
	s.Faults = Faults{}
	for _, w := range s.watches {
		w.held = time.Time{}
	}
	for _, p := range s.processes {
		p.unlisted = ""
	}
}
