// Package configfile keeps the configuration in force while the operator runs: it follows the file by polling its content.
// It logs and measures nothing itself; the hooks of Store do.
package configfile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// DefaultInterval is the time between two reads of the file. A change needs two reads that agree, and the time that reconcilers take: so the
// change is in force within 10 s.
const DefaultInterval = 2 * time.Second

// Accepted describes a content that was read and found valid.
type Accepted struct {
	Hash            string   // of the content, for warren_config_info; empty where there is no file
	RestartRequired []string // fields of the file whose new values take effect only after a restart
	Warnings        []string // "path: sentence"
}

// Store holds the configuration in force. It satisfies controller-runtime's Runnable. Set the fields before Start.
type Store struct {
	Interval time.Duration // DefaultInterval if 0

	// OnAccepted and OnRefused are called from Start, once for each new content that counts; never at the same time. OnRefused gets the
	// problems of a content, one per line, or why the file can't be read; the configuration in force stays.
	OnAccepted func(Accepted)
	OnRefused  func(error)
	// Check returns why a valid content must not come into force all the same; with a nil Check, every valid content may. If Check can't
	// judge a content now, it returns an Unjudged error, and the content is checked again later.
	Check func(old, now *config.OperatorConfiguration) error

	path    string
	options []config.Option
	current atomic.Pointer[config.OperatorConfiguration]
	started Accepted

	polling   sync.Mutex
	settled   string // the hash of the content that was judged last, or the error of reading it
	candidate string // a content that one read has shown, and that the next read may confirm
	unjudged  string // a content that could not be judged, which is judged again at judgeAt
	judgeAt   time.Time

	subscribing sync.Mutex
	subscribers []func(old, current *config.OperatorConfiguration)
}

// Open loads the file at path, or the defaults if path is empty. Options hold for every later load, too.
func Open(path string, options ...config.Option) (*Store, error) {
	s := &Store{Interval: DefaultInterval, path: path, options: options}
	if path == "" {
		c := config.Default()
		for _, option := range options {
			option(c)
		}
		s.acceptFirst(c, "")
		return s, nil
	}
	data, err := config.Read(path)
	if err != nil {
		return nil, err
	}
	c, err := config.Parse(path, data, options...)
	if err != nil {
		return nil, err
	}
	s.settled = hashFile(data)
	s.acceptFirst(c, s.settled)
	return s, nil
}

// acceptFirst puts the first configuration in force.
func (s *Store) acceptFirst(c *config.OperatorConfiguration, hash string) {
	s.current.Store(c)
	s.started = Accepted{Hash: hash, Warnings: c.Warnings()}
}

// Current returns the configuration in force, with the fields that need a restart as they were at start. It is shared:
// callers must not change it.
func (s *Store) Current() *config.OperatorConfiguration { return s.current.Load() }

// Started describes the content that Open read.
func (s *Store) Started() Accepted { return s.started }

// Subscribe has changed called after each change of the configuration in force, one change after the other. A caller that subscribes after
// Start should call Current once more.
func (s *Store) Subscribe(changed func(old, current *config.OperatorConfiguration)) {
	s.subscribing.Lock()
	defer s.subscribing.Unlock()
	s.subscribers = append(s.subscribers, changed)
}

// Start polls the file until ctx is done.
func (s *Store) Start(ctx context.Context) error {
	interval := s.Interval
	if interval <= 0 {
		interval = DefaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.Poll()
		}
	}
}

// NeedLeaderElection returns false: a standby answers admission requests, and must be ready to take over.
func (s *Store) NeedLeaderElection() bool { return false }

// Poll reads the file once; Start calls Poll at each interval. The file is polled, not watched, because a mounted ConfigMap swaps a symlink,
// of which a watch on the file gets no event. A new content counts once two polls agree, so that a file that is still being written is not
// taken for a whole one. Without a file, Poll does nothing.
func (s *Store) Poll() {
	if s.path == "" {
		return
	}
	s.polling.Lock()
	defer s.polling.Unlock()
	data, err := config.Read(s.path)
	content := hashFile(data)
	if err != nil {
		content = err.Error()
	}
	if content == s.settled || content != s.candidate {
		s.candidate = content
		return
	}
	if content == s.unjudged && time.Now().Before(s.judgeAt) {
		return
	}
	before := s.settled
	s.settled = content
	if err != nil {
		s.refuseFile(err)
		return
	}
	file, err := config.Parse(s.path, data, s.options...)
	if err != nil {
		s.refuseFile(err)
		return
	}
	if s.Check != nil {
		if err := s.Check(s.Current(), file); err != nil {
			if errors.As(err, new(Unjudged)) {
				s.settled, s.unjudged, s.judgeAt = "", content, time.Now().Add(judgePause)
			}
			s.refuseFile(err)
			return
		}
		if now, err := config.Read(s.path); err != nil || hashFile(now) != content {
			s.settled = before // it was taken back, or changed again, while it was judged
			return
		}
	}
	s.takeFile(file, content)
}

// judgePause is the pause before a content that could not be judged is judged again: the check may be much work for the API server.
const judgePause = 30 * time.Second

// Unjudged is the error of a Check that could not judge a content yet.
type Unjudged struct{ Cause error }

func (u Unjudged) Error() string { return u.Cause.Error() }

// Unwrap returns the cause.
func (u Unjudged) Unwrap() error { return u.Cause }

func (s *Store) takeFile(file *config.OperatorConfiguration, hash string) {
	old := s.Current()
	inForce := config.InForce(old, file)
	accepted := Accepted{Hash: hash, RestartRequired: config.RestartRequired(old, file), Warnings: file.Warnings()}
	if !equality.Semantic.DeepEqual(old, inForce) {
		s.current.Store(inForce)
		s.notifySubscribers(old, inForce)
	}
	if s.OnAccepted != nil {
		s.OnAccepted(accepted)
	}
}

func (s *Store) notifySubscribers(old, inForce *config.OperatorConfiguration) {
	s.subscribing.Lock()
	subscribers := s.subscribers[:len(s.subscribers):len(s.subscribers)] // a subscriber may subscribe another
	s.subscribing.Unlock()
	for _, changed := range subscribers {
		changed(old, inForce)
	}
}

func (s *Store) refuseFile(err error) {
	if s.OnRefused != nil {
		s.OnRefused(err)
	}
}

func hashFile(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
