package watchset

import (
	"math/rand/v2"
	"time"
)

// delayAfterAttempts returns how long to wait after the given number of failed attempts: b.Initial doubled for each,
// b.Max at most, ±20 %.
func (b Backoff) delayAfterAttempts(attempts int) time.Duration {
	d := b.Initial
	for ; attempts > 0 && d < b.Max; attempts-- {
		d *= 2
	}
	return withJitter(min(d, b.Max))
}

// withJitter returns a random duration between 80 % and 120 % of d.
func withJitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}
