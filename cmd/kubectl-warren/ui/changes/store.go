package changes

import (
	"crypto/rand"
	"errors"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// lifetime is how long a person may look at a preview before running it.
const lifetime = 5 * time.Minute

// maxStored bounds the previews that are kept, so that a page that asks for many uses no more memory.
const maxStored = 256

// Run is an action that the API server has answered as a dry run, and that may be sent once.
type Run struct {
	ID      string
	Action  *Action
	Command string
	// Asked are the fields of the form.
	Asked url.Values
	// Sudo is the identity that the request impersonates, and Tenant the tenant whose sudo that is; nil and "" for none.
	Sudo   *rest.ImpersonationConfig
	Tenant string

	session string
	expires time.Time
}

// Store holds the runs. mu guards runs.
type Store struct {
	now  func() time.Time
	mu   sync.Mutex
	runs map[string]*Run
}

// NewStore makes an empty store with a clock.
func NewStore(now func() time.Time) *Store { return &Store{now: now, runs: map[string]*Run{}} }

// Put keeps a run for a session, and gives it an ID.
func (s *Store) Put(session string, run *Run) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, old := range s.runs {
		if s.now().After(old.expires) || len(s.runs) >= maxStored {
			delete(s.runs, id)
		}
	}
	run.ID, run.session, run.expires = rand.Text(), session, s.now().Add(lifetime)
	s.runs[run.ID] = run
	return run
}

// ErrUnknownRun reports that there is nothing to run.
var ErrUnknownRun = errors.New("this change was run already, or was previewed more than 5 minutes ago, or by another browser: look again")

// Take returns a run, once, to the session that has previewed it.
func (s *Store) Take(session, id string) (*Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.runs[id]
	if run == nil || run.session != session || s.now().After(run.expires) {
		return nil, ErrUnknownRun
	}
	delete(s.runs, id)
	return run, nil
}
