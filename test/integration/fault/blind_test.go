package fault_test

import (
	"net/http"
	"time"
)

const (
	// blindFor is how long the operator sees no event. During behindFor, it sees each event late, by behindBy.
	blindFor            = 2 * time.Second
	behindBy, behindFor = 5 * time.Second, 20 * time.Second
)

// blind holds back the events of all watches for blindFor. Then they are delivered or, with gap, lost, and the watches end.
func (s *stage) blind(gap bool) {
	s.countBlinding(blindFor)
	s.Freeze(func(*http.Request) bool { return true })
	time.AfterFunc(blindFor, func() {
		if gap {
			s.ThawWithGap()
			return
		}
		s.Thaw()
	})
}

// lag ends that life of the operator. The next life sees every event late.
func (s *stage) lag(life int) {
	s.countBlinding(behindFor)
	s.Lag(behindBy, behindFor, func(*http.Request) bool { return true })
	s.kill(life)
}

func (s *stage) countBlinding(lasts time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blinded++
	if sees := time.Now().Add(lasts); sees.After(s.sees) {
		s.sees = sees
	}
}

// seesAll reports whether the operator is neither blind nor behind.
func (s *stage) seesAll() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().After(s.sees)
}

// blindings counts the times that the operator was blind or behind.
func (s *stage) blindings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blinded
}
