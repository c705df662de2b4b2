package fakebigquery

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// Request is a kind of request.
type Request string

// The requests that the server answers.
const (
	Insert  Request = "jobs.insert"
	Get     Request = "jobs.get"
	Results Request = "jobs.getQueryResults"
	Token   Request = "token"
)

// Fault is what happens to the next requests of a kind, in place of their answer.
type Fault struct {
	Request Request
	// Times is how many requests the fault affects; 0: all, until Heal.
	Times int

	// Status, Reason and Message are an error that the API answers. Without a Reason the answer is HTML, as from a proxy on the way.
	Status          int
	Reason, Message string
	// Hold lets the request wait until Heal or until its caller gives up; then the request is carried out.
	Hold bool
	// LoseRequest ends the connection before the request is carried out, LoseAnswer after that.
	LoseRequest, LoseAnswer bool
	// JobReason and JobMessage let a job be accepted, and fail for this reason.
	JobReason, JobMessage string

	met int
	// healed is closed by Heal.
	healed chan struct{}
}

// Break adds a fault. Of several for a request, the first one that is not used up counts.
func (s *Server) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.healed = make(chan struct{})
	s.faults = append(s.faults, &f)
}

// Heal ends all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		close(f.healed)
	}
	s.faults = nil
}

// nextFault counts the request, and returns the fault that affects it, or nil.
func (s *Server) nextFault(kind Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[kind]++
	for _, f := range s.faults {
		if f.Request == kind && f.JobReason == "" && (f.Times == 0 || f.met < f.Times) {
			f.met++
			return f
		}
	}
	return nil
}

// nextFailure returns the error with which the next job fails, or nil. The caller holds s.mu.
func (s *Server) nextFailure() *apiError {
	for _, f := range s.faults {
		if f.JobReason != "" && (f.Times == 0 || f.met < f.Times) {
			f.met++
			return &apiError{http.StatusBadRequest, f.JobReason, f.JobMessage}
		}
	}
	return nil
}

// before applies the fault before an answer, and reports whether it has answered the request.
func (f *Fault) before(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case f.Hold:
		body, err := io.ReadAll(r.Body) // the server notices that the caller has gone only when the body is read
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-f.healed:
		case <-r.Context().Done():
		}
		return false
	case f.LoseRequest:
		panic(http.ErrAbortHandler)
	case f.Status != 0 && f.Reason == "":
		w.WriteHeader(f.Status)
		fmt.Fprint(w, "<html>"+f.Message+"</html>")
	case f.Status != 0:
		(&apiError{f.Status, f.Reason, f.Message}).write(w)
	default:
		return false
	}
	return true
}
