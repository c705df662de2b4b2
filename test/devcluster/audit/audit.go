// Package audit reads the API server's audit log while it is being written: who asked what, and what was answered.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Position is a place in an audit log.
type Position struct {
	// Bytes is their number before it.
	Bytes int64
	// Since leaves out requests that arrived earlier, and were answered after the position. Watches last, so it doesn't concern them.
	Since time.Time
}

// Request is one request that was answered.
type Request struct {
	// At is when it arrived.
	At time.Time
	// User is the user who asked, and As the one whom that user impersonated, if any.
	User, As string
	// Verb as the authorizer sees it: get, list, watch, create, update, patch, delete, deletecollection.
	Verb string
	// Group, Resource, Subresource, Namespace and Name of the object; empty for a request of another path.
	Group, Resource, Subresource, Namespace, Name string
	URI, UserAgent                                string
	// Code is the HTTP status of the answer.
	Code int
	// Event is the whole entry of the log.
	Event *auditv1.Event
}

// String is one line for a failure message, such as `create secrets payments/db 201 by bob (kubectl/v1.36.3)`.
func (r Request) String() string {
	what := r.URI
	if r.Resource != "" {
		what = r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		what += " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	}
	agent, _, _ := strings.Cut(r.UserAgent, " ")
	return fmt.Sprintf("%s %s %d by %s (%s)", r.Verb, what, r.Code, r.User, agent)
}

// IsWrite reports whether the request asked for a change that is stored, whatever the answer was. Leases and Events don't count, nor do
// reviews and requests for tokens: they are POSTs that store nothing.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	switch r.Group {
	case "coordination.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io":
		return false
	case "":
		return r.Resource != "" && r.Resource != "events" && r.Subresource != "token"
	}
	return true
}

// Read returns the answered requests from a position on, and the position after them. A last line that is still being
// written is left for the next time.
func Read(path string, from Position) ([]Request, Position, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, from, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(from.Bytes, io.SeekStart); err != nil {
		return nil, from, fmt.Errorf("reading the audit log: %w", err)
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, from, fmt.Errorf("reading the audit log: %w", err)
	}
	return parseRequest(content, from)
}

// End returns the position after the last line that is complete.
func End(path string) (Position, error) {
	f, err := os.Open(path)
	if err != nil {
		return Position{}, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return Position{}, fmt.Errorf("reading the audit log: %w", err)
	}
	const chunk = 64 << 10
	for end := info.Size(); end > 0; {
		start := max(0, end-chunk)
		content, err := io.ReadAll(io.NewSectionReader(f, start, end-start))
		if err != nil {
			return Position{}, fmt.Errorf("reading the audit log: %w", err)
		}
		if i := bytes.LastIndexByte(content, '\n'); i >= 0 {
			return Position{Bytes: start + int64(i) + 1}, nil
		}
		end = start
	}
	return Position{}, nil
}

func parseRequest(content []byte, from Position) ([]Request, Position, error) {
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	var requests []Request
	for line := range bytes.Lines(content) {
		event := &auditv1.Event{}
		if err := json.Unmarshal(line, event); err != nil {
			return nil, from, fmt.Errorf("reading the audit log: line %q: %w", line, err)
		}
		// A watch is answered when it starts and complete when it ends: ResponseStarted would count it twice.
		if event.Stage != auditv1.StageResponseComplete {
			continue
		}
		if r := request(event); r.Verb == "watch" || !r.At.Before(from.Since) {
			requests = append(requests, r)
		}
	}
	from.Bytes += int64(len(content))
	return requests, from, nil
}

func request(event *auditv1.Event) Request {
	r := Request{
		At: event.RequestReceivedTimestamp.Time, User: event.User.Username, Verb: event.Verb,
		URI: event.RequestURI, UserAgent: event.UserAgent, Event: event,
	}
	if event.ImpersonatedUser != nil {
		r.As = event.ImpersonatedUser.Username
	}
	if ref := event.ObjectRef; ref != nil {
		r.Group, r.Resource, r.Subresource = ref.APIGroup, ref.Resource, ref.Subresource
		r.Namespace, r.Name = ref.Namespace, ref.Name
	}
	if event.ResponseStatus != nil {
		r.Code = int(event.ResponseStatus.Code)
	}
	return r
}

// Writes returns those of the requests that are a user's writes.
func Writes(requests []Request, user string) []Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r Request) bool { return r.User != user || !r.IsWrite() })
}
