package copying

import (
	"sync"
	"time"
)

const (
	// sharedWorkers is how many workers write copies of one tenant while other tenants have work, too. An API server with two cores answers the
	// others more slowly by half meanwhile; with sixteen it took six times as long.
	sharedWorkers = 2
	// maxWeight is how many bytes of heavy work may be under way at once: two bodies of the largest kind. With sixteen such bodies under way, an
	// API server with two cores took more than a minute to bring any write, by anybody, to its watches.
	maxWeight = 3 << 20
	// sharedWeight is how many bytes it may be while other tenants have work, too: one body of the largest kind.
	sharedWeight = 1 << 20
	// restFactor is how long heavy work rests while other tenants have work, too, in times of what it took: so half of what the others ask for meets
	// an API server that has no heavy body before it.
	restFactor = 2
	// sharedFor is how long after its last key another tenant counts as one that has work.
	sharedFor = 5 * time.Second
)

// share is what the work of a key takes of what all tenants share.
type share struct {
	tenant  string
	limited bool // sharedWorkers holds: the work writes a copy of a tenant, and takes no rights away
	weight  int  // in bytes; 0 if it isn't heavy
}

// shareOf returns what the work of a key with that turn takes.
func shareOf[L comparable](turn Turn[L]) share {
	return share{tenant: turn.Tenant, limited: turn.Tenant != "" && turn.Class > 0, weight: turn.Weight}
}

// shares keep one tenant from taking all workers, or the whole API server, while other tenants have work. They set keys aside until there is
// room. A worker never waits for room, so the keys of others never wait behind these.
type shares[K, L comparable] struct {
	turnOf func(K) Turn[L]

	mu       sync.Mutex              // guards all below; the queue is never called while it is held
	of       map[K]share             // keys that are handed out and have not begun
	crowded  map[string]*lanes[K, L] // by tenant, keys that wait for one of its workers
	heavy    *lanes[K, L]            // keys that wait until there is room for their weight
	isAside  map[K]bool              // the keys in crowded and in heavy
	workers  map[string]int          // by tenant, how many limited keys are worked on
	underWay int                     // the weight of what is worked on, in bytes
	lately   lately
}

func newShares[K, L comparable](turnOf func(K) Turn[L]) *shares[K, L] {
	return &shares[K, L]{
		turnOf: turnOf, of: map[K]share{}, crowded: map[string]*lanes[K, L]{}, heavy: newLanes(turnOf, nil), isAside: map[K]bool{}, workers: map[string]int{},
	}
}

// note remembers what a key takes that is handed out, and that its tenant has work.
func (s *shares[K, L]) note(k K, turn Turn[L]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[k] = shareOf(turn)
	s.lately.note(turn.Tenant, time.Now())
}

// begin says whether there is room for the work of a key that was handed out, and sets the key aside if there is none.
func (s *shares[K, L]) begin(k K) (of share, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of = s.of[k]
	delete(s.of, k)
	if s.isCrowded(of) || !s.hasRoom(of) {
		of = shareOf(s.turnOf(k)) // by now the key's work may be a deletion, which has no weight, or may take rights away
	}
	switch {
	case s.isCrowded(of):
		if s.crowded[of.tenant] == nil {
			s.crowded[of.tenant] = newLanes(s.turnOf, nil)
		}
		s.setAside(s.crowded[of.tenant], k)
	case !s.hasRoom(of):
		s.setAside(s.heavy, k)
	default:
		s.underWay += of.weight
		if of.limited {
			s.workers[of.tenant]++
		}
		return of, true
	}
	return share{}, false
}

func (s *shares[K, L]) setAside(where *lanes[K, L], k K) {
	if !s.isAside[k] {
		s.isAside[k] = true
		where.Push(k)
	}
}

// isCrowded says whether as many workers as a tenant may have write its copies.
func (s *shares[K, L]) isCrowded(of share) bool {
	return of.limited && s.workers[of.tenant] >= sharedWorkers && s.lately.anyBut(of.tenant, time.Now())
}

// hasRoom says whether work of that weight may begin. Where nothing heavy is under way there is room for everything.
func (s *shares[K, L]) hasRoom(of share) bool {
	return of.weight == 0 || s.underWay == 0 || s.underWay+of.weight <= s.room(of.tenant)
}

// room is how many bytes may be under way when a tenant's heavy work begins.
func (s *shares[K, L]) room(tenant string) int {
	if s.lately.anyBut(tenant, time.Now()) {
		return sharedWeight
	}
	return maxWeight
}

// rest returns how long what heavy work took stays taken once the work is done, if it lasted so long.
func (s *shares[K, L]) rest(of share, lasted time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.weight == 0 || !s.lately.anyBut(of.tenant, time.Now()) {
		return 0
	}
	return restFactor * lasted
}

// end gives back what work that is done has taken, and returns the keys that may have room now.
func (s *shares[K, L]) end(of share) (ready []K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.limited {
		ready = s.leave(of.tenant)
	}
	if of.weight > 0 {
		s.underWay -= of.weight
		for room := s.room(of.tenant) - s.underWay; room > 0 && s.heavy.Len() > 0; {
			k := s.heavy.Pop()
			delete(s.isAside, k)
			ready = append(ready, k)
			room -= s.turnOf(k).Weight
		}
	}
	return ready
}

// leave counts a worker of a tenant less, and returns the next key of the tenant: all of them where no other tenant has work any longer.
func (s *shares[K, L]) leave(tenant string) (ready []K) {
	if s.workers[tenant]--; s.workers[tenant] == 0 {
		delete(s.workers, tenant)
	}
	waiting := s.crowded[tenant]
	if waiting == nil {
		return nil
	}
	for waiting.Len() > 0 && (len(ready) == 0 || !s.lately.anyBut(tenant, time.Now())) {
		k := waiting.Pop()
		delete(s.isAside, k)
		ready = append(ready, k)
	}
	if waiting.Len() == 0 {
		delete(s.crowded, tenant)
	}
	return ready
}

// count says how many keys are set aside.
func (s *shares[K, L]) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.isAside)
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
