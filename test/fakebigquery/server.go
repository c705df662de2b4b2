// Package fakebigquery answers BigQuery's REST API for tests, as far as the ledger's driver uses it: jobs.insert, jobs.get and
// jobs.getQueryResults of API v2, and the address that issues tokens. SQLite runs the statements, after those words of GoogleSQL that the
// ledger uses are translated; words of other engines are refused. Tests with it show how a driver handles answers. How the real BigQuery
// handles a statement, they don't show: test/googlesql and the smoke test of the guide do.
package fakebigquery

import (
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // what runs the statements
)

// The one dataset that the server has.
const (
	Project  = "acme-finops"
	Dataset  = "finops"
	Location = "EU"
)

// Server is a running server with a dataset of its own.
type Server struct {
	// Slow means that a new job is running when it is made, and done when a client asks for it. Otherwise it is done at once.
	Slow bool
	// PageRows is how many rows one answer holds.
	PageRows int
	// BytesRead is how many bytes each statement is assumed to read.
	BytesRead int64

	http *httptest.Server
	db   *sql.DB

	mu       sync.Mutex // guards what follows
	jobs     map[string]*job
	faults   []*Fault
	requests map[Request]int
	poison   string
}

// Start makes a server. Stop ends it.
func Start() (*Server, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each connection has a database of its own
	if _, err := db.Exec("CREATE TABLE options (table_name TEXT, option_name TEXT, option_value TEXT)"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &Server{PageRows: 1000, db: db, jobs: map[string]*job{}, requests: map[Request]int{}}
	s.http = httptest.NewServer(s.routes())
	return s, nil
}

// Stop ends the server; its dataset is gone.
func (s *Server) Stop() {
	s.http.Close()
	_ = s.db.Close()
}

// Endpoint is the address of the API.
func (s *Server) Endpoint() string { return s.http.URL + "/bigquery/v2/" }

// Refuse makes each job fail that has a parameter with this text in it, as BigQuery does when it can't cast a value. With an empty text,
// none fails.
func (s *Server) Refuse(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poison = text
}

// Requests returns how many requests of a kind came, including those that a fault affected.
func (s *Server) Requests(kind Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[kind]
}

// Jobs returns how many jobs there are, including those that failed.
func (s *Server) Jobs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.jobs)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /bigquery/v2/projects/{project}/jobs", s.handle(Insert, s.insertJob))
	mux.Handle("GET /bigquery/v2/projects/{project}/jobs/{job}", s.handle(Get, s.getJob))
	mux.Handle("GET /bigquery/v2/projects/{project}/queries/{job}", s.handle(Results, s.getResults))
	mux.Handle("POST /token", s.handle(Token, s.giveToken))
	return mux
}

// handle counts a request, applies its fault, checks its token and project, and writes the answer.
func (s *Server) handle(kind Request, answer func(*http.Request) (any, *apiError)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := s.nextFault(kind)
		if fault != nil && fault.before(w, r) {
			return
		}
		body, problem := any(nil), checkCaller(kind, r)
		if problem == nil {
			body, problem = answer(r)
		}
		if fault != nil && fault.LoseAnswer {
			panic(http.ErrAbortHandler) // the connection ends without a word
		}
		if problem != nil {
			problem.write(w)
			return
		}
		writeJSON(w, http.StatusOK, body)
	})
}

func checkCaller(kind Request, r *http.Request) *apiError {
	switch {
	case kind == Token:
		return nil
	case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
		return &apiError{http.StatusUnauthorized, "required", "Login Required."}
	case r.PathValue("project") != Project:
		return &apiError{http.StatusForbidden, "accessDenied",
			"Access Denied: Project " + r.PathValue("project") + ": User does not have bigquery.jobs.create permission"}
	}
	return nil
}

// apiError is an error as the API writes it.
type apiError struct {
	code            int
	reason, message string
}

func (e *apiError) write(w http.ResponseWriter) {
	writeJSON(w, e.code, map[string]any{"error": map[string]any{"code": e.code, "message": e.message,
		"errors": []any{map[string]any{"domain": "global", "reason": e.reason, "message": e.message}}}})
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
