package billing

import "time"

// Rest is a time, after an error of the warehouse, during which nothing is sent. The zero Rest is over.
type Rest struct {
	from   time.Time
	length time.Duration
}

// RestFor returns a rest of that length that begins at from.
func RestFor(length time.Duration, from time.Time) Rest { return Rest{from, length} }

// Lasts reports whether the rest goes on. A clock that was set back to before the rest's beginning ends it, because how much of it is
// left is unknown then.
func (r Rest) Lasts(now time.Time) bool {
	passed := now.Sub(r.from)
	return passed >= 0 && passed < r.length
}
