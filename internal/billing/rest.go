package billing

import "time"

// Rest is a time in which nothing is tried. The zero Rest is over.
type Rest struct {
	from   time.Time
	length time.Duration
}

// RestFor begins a rest.
func RestFor(length time.Duration, from time.Time) Rest { return Rest{from, length} }

// Lasts says whether it goes on. A clock that was set back to before its beginning ends it: nobody knows how much of it is left.
func (r Rest) Lasts(now time.Time) bool {
	passed := now.Sub(r.from)
	return passed >= 0 && passed < r.length
}
