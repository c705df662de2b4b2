package hierarchy

import (
	"testing"
	"time"
)

func TestRestAfter(t *testing.T) {
	for _, test := range []struct {
		workers      int
		lasted, want time.Duration
	}{
		{1, 5 * time.Millisecond, 10 * time.Millisecond},
		{2, 5 * time.Millisecond, 20 * time.Millisecond},
		{8, 5 * time.Millisecond, 80 * time.Millisecond},
		{1, time.Second, 100 * time.Millisecond},
		{2, 0, 0},
	} {
		t.Run("HIER-R5 after a write of a status, a worker rests for twice the time of that write, times the number of workers, at "+
			"most 100 ms", func(t *testing.T) {
			r := &Reporter{Concurrency: test.workers}
			if got := r.restAfter(test.lasted); got != test.want {
				t.Errorf("one of %d workers rests for %s after a write of %s, want %s", test.workers, got, test.lasted, test.want)
			}
		})
	}
}
