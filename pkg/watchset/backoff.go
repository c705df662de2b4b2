package watchset

import (
	"math/rand/v2"
	"time"
)

// delayAfter is how long to wait after so many attempts that failed.
func (b Backoff) delayAfter(attempts int) time.Duration {
	d := b.Initial
	for ; attempts > 0 && d < b.Max; attempts-- {
		d *= 2
	}
	return jitter(min(d, b.Max))
}

// jitter is d ±20 %.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}
