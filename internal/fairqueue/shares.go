package fairqueue

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// sharedWorkers is how many workers read sources and write copies of one tenant while other tenants have work, too. An API server with two
	// cores answers the others more slowly by half meanwhile; with sixteen it took six times as long.
	sharedWorkers = 2
	// maxWeight is how many bytes of heavy work may be under way at once: two bodies of the largest kind. With sixteen such bodies under way, an
	// API server with two cores took more than a minute to bring any write, by anybody, to its watches.
	maxWeight = 3 << 20
	// sharedWeight is how many bytes it may be while other tenants have work, too: one body of the largest kind.
	sharedWeight = 1 << 20
	// restFactor is how long heavy work, and a worker whose request was in vain, rests while other tenants have work, too, in times of what it took: so
	// most of what the others ask for meets an API server that is not busy with these.
	restFactor = 2
	// vainRest is the longest rest after work in vain: a request that took long to fail, such as one to a webhook that hangs, kept the API server
	// from nothing, and the tenant's other copies must not wait for it.
	vainRest = 500 * time.Millisecond
	// sharedFor is how long after its last key another tenant counts as one that has work.
	sharedFor = 5 * time.Second
)

// share is what the work of a key takes of what all tenants have together.
type share struct {
	tenant  string
	limited bool // sharedWorkers holds: the work is a tenant's, and neither urgent nor heavy
	weight  int  // in bytes; 0 if it isn't heavy
}

// shareOf returns what the work of a key with that turn takes.
func shareOf(turn Attributes) share {
	return share{tenant: turn.Tenant, limited: turn.Tenant != "" && !turn.Urgent && turn.Weight == 0, weight: turn.Weight}
}

// shares keep one tenant from taking all workers, or the whole API server, while other tenants have work. They set keys aside until there is
// room; who ends hands its room over to the next. A worker never waits for room, so the keys of others never wait behind these. A key that
// is set aside keeps the turn it had; whoever changes what it asks for queues it again, and then the new turn counts.
type shares[K comparable] struct {
	clock    clock.PassiveClock
	mu       sync.Mutex           // guards all below; the queue is never called while it is held
	came     map[K]Attributes     // keys that were handed out and have not begun
	crowded  map[string]*Order[K] // by tenant, keys that wait for one of its workers
	heavy    *Order[K]            // keys that wait until there is room for their weight
	aside    map[K]Attributes     // the keys that are set aside; their places in crowded and heavy for other turns count no more
	reserved map[K]Attributes     // keys that were set aside, have room now, and have not begun
	workers  map[string]int       // by tenant, how many limited keys are worked on or reserved
	bodies   int                  // how many heavy keys are worked on or reserved
	underWay int                  // their weight, in bytes
	lately   lately
	reviews  bool // whether a review is to come
}

func newShares[K comparable](c clock.PassiveClock) *shares[K] {
	return &shares[K]{
		clock: c,
		came:  map[K]Attributes{}, crowded: map[string]*Order[K]{}, heavy: NewOrder[K](nil, nil),
		aside: map[K]Attributes{}, reserved: map[K]Attributes{}, workers: map[string]int{},
	}
}

// reservedTurn returns the turn of a key that has room already.
func (s *shares[K]) reservedTurn(k K) (turn Attributes, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn, ok = s.reserved[k]
	return turn, ok
}

// note remembers the turn of a key that is handed out, and that its tenant has work; what is urgent holds nobody else up.
func (s *shares[K]) note(k K, turn Attributes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.came[k] = turn; !turn.Urgent {
		s.lately.note(turn.Tenant, s.clock.Now())
	}
}

// begin says whether there is room for the work of a key that was handed out, and sets the key aside if there is none.
func (s *shares[K]) begin(k K) (of share, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.came[k]
	delete(s.came, k)
	if held, ok := s.reserved[k]; ok {
		delete(s.reserved, k)
		return shareOf(held), true
	}
	if of = shareOf(turn); s.hasRoom(of) {
		s.take(of)
		delete(s.aside, k)
		return of, true
	}
	if was, waits := s.aside[k]; !waits || !samePlace(was, turn) {
		s.lineOf(of).PushTurn(k, turn)
	}
	s.aside[k] = turn
	return share{}, false
}

// samePlace says whether keys with these turns wait in the same line, and in the same class there.
func samePlace(a, b Attributes) bool {
	return a.Tenant == b.Tenant && a.Class == b.Class && shareOf(a).limited == shareOf(b).limited
}

// lineOf returns where keys wait that take so much.
func (s *shares[K]) lineOf(of share) *Order[K] {
	if !of.limited {
		return s.heavy
	}
	if s.crowded[of.tenant] == nil {
		s.crowded[of.tenant] = NewOrder[K](nil, nil)
	}
	return s.crowded[of.tenant]
}

// hasRoom says whether work that takes so much may begin. Where nothing heavy is under way there is room for every weight.
func (s *shares[K]) hasRoom(of share) bool {
	shared := s.lately.anyBut(of.tenant, s.clock.Now())
	switch {
	case of.limited:
		return !shared || s.workers[of.tenant] < sharedWorkers
	case of.weight == 0 || s.bodies == 0:
		return true
	case shared:
		return s.bodies < sharedWorkers && s.underWay+of.weight <= sharedWeight
	}
	return s.underWay+of.weight <= maxWeight
}

func (s *shares[K]) take(of share) {
	if of.limited {
		s.workers[of.tenant]++
	}
	if of.weight > 0 {
		s.bodies++
		s.underWay += of.weight
	}
}

// rest returns how long what work took stays taken once the work is done, if it lasted so long, and was heavy or in vain: sharedFor at most, for a
// request that hangs must not hold up the large bodies of all tenants, and vainRest if it was not heavy.
func (s *shares[K]) rest(of share, lasted time.Duration, inVain bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.lately.anyBut(of.tenant, s.clock.Now()):
		return 0
	case of.weight > 0:
		return min(restFactor*lasted, sharedFor)
	case of.limited && inVain:
		return min(restFactor*lasted, vainRest)
	}
	return 0
}

// end gives back what work that is done has taken, and returns the keys that may begin now.
func (s *shares[K]) end(of share) (ready []K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.limited {
		if s.workers[of.tenant]--; s.workers[of.tenant] == 0 {
			delete(s.workers, of.tenant)
		}
		ready = s.reserveFor(of.tenant)
	}
	if of.weight > 0 {
		s.bodies--
		s.underWay -= of.weight
		ready = append(ready, s.reserve(s.heavy)...)
	}
	return ready
}

// reserveFor reserves the workers of a tenant for its keys that wait for them.
func (s *shares[K]) reserveFor(tenant string) (ready []K) {
	waiting := s.crowded[tenant]
	if waiting == nil {
		return nil
	}
	if ready = s.reserve(waiting); waiting.Len() == 0 {
		delete(s.crowded, tenant)
	}
	return ready
}

// reserve returns the keys that wait there, in order, as far as there is room, which is theirs from now on. Where the tenant has all workers
// again, nothing is reserved: each of its keys looks for room itself, for another tenant may have work by then.
func (s *shares[K]) reserve(waiting *Order[K]) (ready []K) {
	for waiting.Len() > 0 {
		k, turn := waiting.First()
		latest, waits := s.aside[k]
		if !waits || !samePlace(latest, turn) {
			waiting.Pop()
			continue
		}
		of := shareOf(latest)
		if !s.hasRoom(of) {
			break
		}
		if !of.limited || s.lately.anyBut(of.tenant, s.clock.Now()) {
			s.take(of)
			s.reserved[k] = latest
		}
		waiting.Pop()
		delete(s.aside, k)
		ready = append(ready, k)
	}
	return ready
}

// needsReview says, once, that somebody is to call review after sharedFor: keys are set aside.
func (s *shares[K]) needsReview() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	needs := !s.reviews && len(s.aside) > 0
	s.reviews = s.reviews || needs
	return needs
}

// review returns the keys that have room by now because no other tenant has had work for a while, though nothing may have ended: a request that
// hangs holds back no others.
func (s *shares[K]) review() (ready []K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reviews = false
	for tenant := range s.crowded {
		ready = append(ready, s.reserveFor(tenant)...)
	}
	return append(ready, s.reserve(s.heavy)...)
}

// count says how many keys are set aside.
func (s *shares[K]) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.aside)
}

// lately are the two tenants whose keys were handed out last, the later one first. Two are enough to tell whether any but a given one has work.
type lately [2]struct {
	tenant string
	at     time.Time
}

func (l *lately) note(tenant string, now time.Time) {
	if tenant == "" {
		return
	}
	if l[0].tenant != tenant {
		l[1] = l[0]
		l[0].tenant = tenant
	}
	l[0].at = now
}

// anyBut says whether a key of another tenant was handed out within sharedFor.
func (l *lately) anyBut(tenant string, now time.Time) bool {
	for _, last := range l {
		if last.tenant != tenant && now.Sub(last.at) < sharedFor {
			return true
		}
	}
	return false
}
