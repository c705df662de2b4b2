package watchset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Set runs informers, shares them between owners and follows the rights of the identity in its configuration. All its
// methods may be called from any goroutine.
type Set struct {
	options Options
	clients *clients
	catalog *catalog
	metrics *metrics
	log     logr.Logger
	slots   *semaphore.Weighted // slots: each permits one of the StartConcurrency initial lists
	reviews *reviewer
	ended   chan struct{}  // closed when the Set stops
	running sync.WaitGroup // goroutines that Start waits for

	lock      setLock         // guards all fields below, and those of parts, leases and runs
	ctx       context.Context // the context of Start; nil before that
	stopped   bool
	parts     registry
	owners    ownership
	listeners listeners
	own       ownWatches
}

// New makes a Set for the identity in cfg. It makes no request. It fails for a nil or malformed cfg, for negative
// numbers in o, and where o.Registerer refuses the metrics. Where cfg has no QPS and no RateLimiter, the Set doesn't
// throttle its requests: only StartConcurrency limits the initial lists.
func New(cfg *rest.Config, o Options) (*Set, error) {
	if cfg == nil {
		return nil, errors.New("making a watch set: the rest.Config is nil")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("making a watch set: %w", err)
	}
	c, err := newClients(cfg, o.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("making a watch set: %w", err)
	}
	s := &Set{
		options: o, clients: c, log: o.Logger,
		slots: semaphore.NewWeighted(int64(o.StartConcurrency)), ended: make(chan struct{}),
		parts: newRegistry(), owners: ownership{records: map[Owner]*holdings{}}, listeners: newListeners(),
	}
	s.catalog = newCatalog(c, s.ended)
	s.metrics = newMetrics(s)
	s.reviews = newReviewer(s)
	s.own.set, s.own.counts = s, map[State]int{}
	if o.Registerer != nil {
		if err := o.Registerer.Register(s.metrics); err != nil {
			return nil, fmt.Errorf("making a watch set: %w", err)
		}
	}
	return s, nil
}

// Start runs the set until ctx is done and returns nil when every goroutine and watch has ended. With Start, a Set is a
// manager.Runnable. A second call returns ErrStarted. Leases taken before Start are Pending until then.
func (s *Set) Start(ctx context.Context) error {
	var err error
	s.lock.changeUnderLock(func() { err = s.beginReviewsAndParts(ctx) })
	if err != nil {
		return err
	}
	<-ctx.Done()
	s.lock.changeUnderLock(s.stopEverything)
	s.running.Wait()
	s.catalog.flights.waitForRequests()
	return nil
}

// beginReviewsAndParts starts the reviewers, and the parts for which there is room. The caller holds the Set's lock, as
// the caller of stopEverything does.
func (s *Set) beginReviewsAndParts(ctx context.Context) error {
	if s.ctx != nil {
		return ErrStarted
	}
	s.ctx = ctx
	s.reviews.beginReviewing()
	s.admitWaitingParts()
	return nil
}

func (s *Set) stopEverything() {
	s.stopped = true
	close(s.ended)
	s.reviews.stopReviewing()
	for _, p := range s.parts.all {
		p.haltRunAndTimer()
	}
	s.own.haltOwnParts()
	s.listeners.stopAllFeeds()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false, so that a standby's informers are
// Synced before it leads.
func (s *Set) NeedLeaderElection() bool { return false }

// Acquire returns owner's lease on the informers that r asks for. It never blocks and makes no request of its own. A
// missing right, an unknown resource or too many informers show in the lease's Status, not in an error. An owner holds
// one lease for equal requests, however often it acquires that lease. Acquire fails with ErrStopped after Start has
// ended, and with ErrInvalid, which names the field, for a malformed Request.
func (s *Set) Acquire(owner Owner, r Request) (l *Lease, err error) {
	s.lock.changeUnderLock(func() {
		l, err = s.acquireUnderLock(owner, r, s.owners.nextSessionNumber())
	})
	return l, err
}

// Release releases all leases of owner. It may be called more than once.
func (s *Set) Release(owner Owner) {
	s.lock.changeUnderLock(func() {
		if held := s.owners.records[owner]; held != nil {
			for _, l := range held.leases {
				l.releaseParts()
			}
		}
	})
}

// Poke has the rights on the given resources reviewed soon, without the delay of Options.RBACDebounce; no resources
// means all. It doesn't wait for the reviews.
func (s *Set) Poke(resources ...schema.GroupVersionResource) {
	s.metrics.pokes.WithLabelValues("explicit").Inc()
	s.lock.changeUnderLock(func() {
		for _, p := range s.parts.all {
			if len(resources) == 0 || slices.Contains(resources, p.selection.targetResource()) {
				p.scheduleReview(0)
			}
		}
	})
}

// Informers returns a sorted snapshot of all informers, for tests and debug pages.
func (s *Set) Informers() []InformerStatus {
	all := []InformerStatus{}
	s.lock.readUnderLock(func() {
		for _, p := range s.parts.sortedParts() {
			all = append(all, InformerStatus{Request: p.selection.request, Status: p.currentStatus(), Leases: len(p.demand.leases)})
		}
	})
	return all
}

// admitWaitingParts begins parts that wait because of MaxInformers, in alphabetical order, as far as the limit allows.
// The caller holds the lock.
func (s *Set) admitWaitingParts() {
	if s.parts.admitted == len(s.parts.all) || !s.hasRoomForPart() {
		return
	}
	for _, p := range s.parts.sortedParts() {
		if !s.hasRoomForPart() {
			return
		}
		if !p.admitted {
			s.parts.recordAdmission(p)
			p.beginListAndWatch()
		}
	}
}

// hasRoomForPart reports whether another part may begin. The caller holds the lock.
func (s *Set) hasRoomForPart() bool {
	return s.mayMakeRequests() && s.parts.admitted < s.options.MaxInformers
}

// mayMakeRequests reports whether requests may be made. The caller holds the lock.
func (s *Set) mayMakeRequests() bool { return s.ctx != nil && !s.stopped && s.ctx.Err() == nil }

func isTimeDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
