package changes

import (
	"crypto/rand"
	"errors"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// RunLifetime is how long a person may look at a preview before running it.
const RunLifetime = 5 * time.Minute

// maxStored is how many values a store keeps at most, so that a page that asks for many previews uses no more memory.
const maxStored = 256

// Run is an action that the API server has answered as a dry run, and that may be sent once.
type Run struct {
	Action  *Action
	Command string
	// Asked are the fields of the form.
	Asked url.Values
	// Sudo is the identity that the request impersonates, and Tenant the tenant whose sudo that is; nil and "" for none.
	Sudo   *rest.ImpersonationConfig
	Tenant string
}

// ErrUnknownRun reports that there is nothing to run.
var ErrUnknownRun = errors.New("this change was run already, or was previewed more than 5 minutes ago, or by another browser: " +
	"open the page again")

// Store keeps values, each for one session. mu guards entries.
type Store[T any] struct {
	now      func() time.Time
	lifetime time.Duration
	mu       sync.Mutex
	entries  map[string]entry[T]
}

type entry[T any] struct {
	value   T
	session string
	expires time.Time
}

// NewStore makes an empty store with a clock, which keeps a value for lifetime.
func NewStore[T any](now func() time.Time, lifetime time.Duration) *Store[T] {
	return &Store[T]{now: now, lifetime: lifetime, entries: map[string]entry[T]{}}
}

// Put keeps a value for a session, and returns its ID. If there are too many, the oldest value is dropped.
func (s *Store[T]) Put(session string, value T) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := ""
	for id, old := range s.entries {
		if s.now().After(old.expires) {
			delete(s.entries, id)
		} else if oldest == "" || old.expires.Before(s.entries[oldest].expires) {
			oldest = id
		}
	}
	if len(s.entries) >= maxStored {
		delete(s.entries, oldest)
	}
	id = rand.Text()
	s.entries[id] = entry[T]{value, session, s.now().Add(s.lifetime)}
	return id
}

// Get returns a value to the session for which it is kept. ok is false if there is none, or not any more.
func (s *Store[T]) Get(session, id string) (value T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findValue(session, id)
}

// Take returns a value as Get does, and removes it.
func (s *Store[T]) Take(session, id string) (value T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok = s.findValue(session, id); ok {
		delete(s.entries, id)
	}
	return value, ok
}

// findValue returns a value as Get does. The caller holds mu.
func (s *Store[T]) findValue(session, id string) (value T, ok bool) {
	kept, ok := s.entries[id]
	if !ok || kept.session != session || s.now().After(kept.expires) {
		return value, false
	}
	return kept.value, true
}
