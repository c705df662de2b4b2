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

// Fault is what becomes of the next requests of a kind, in place of their answer.
type Fault struct {
	Request Request
	// Times is how many requests it befalls; 0: all, until Heal.
	Times int

	// Status, Reason and Message are an answer of the API. Without a reason it is no JSON, as of a proxy on the way.
	Status          int
	Reason, Message string
	// Hold lets the request wait until Heal or until its caller gives up; then it is done.
	Hold bool
	// LoseRequest ends the connection before anything is done, LoseAnswer after it.
	LoseRequest, LoseAnswer bool
	// JobReason and JobMessage let the job be taken, and fail.
	JobReason, JobMessage string

	met int
	// healed is closed by Heal.
	healed chan struct{}
}

// Break adds a fault. Of several the first that is not used up counts.
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

// nextFault counts the request, and returns what befalls it.
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

// nextFailure is of what the next job fails. The caller holds s.mu.
func (s *Server) nextFailure() *apiError {
	for _, f := range s.faults {
		if f.JobReason != "" && (f.Times == 0 || f.met < f.Times) {
			f.met++
			return &apiError{http.StatusBadRequest, f.JobReason, f.JobMessage}
		}
	}
	return nil
}

// before says whether the request is answered by it already.
func (f *Fault) before(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case f.Hold:
		body, err := io.ReadAll(r.Body) // only then the server notices that the caller has gone
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
