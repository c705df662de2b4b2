package copies

import (
	"testing"
	"time"
)

func TestRepairs(t *testing.T) {
	const window = 10 * time.Minute
	slot, other := Slot{Namespace: "a", Name: "s"}, Slot{Namespace: "b", Name: "s"}
	tests := map[string]struct {
		at   []time.Duration // the times of the repairs
		loop bool            // whether there is a loop after the last repair
		told int             // how many of the repairs are reported as a loop
	}{
		"four in a minute":               {at: []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second}},
		"five in a minute":               {at: []time.Duration{0, 1, 2, 3, time.Minute}, loop: true, told: 1},
		"five in just under ten minutes": {at: []time.Duration{0, 1, 2, 3, window - 1}, loop: true, told: 1},
		"five in ten minutes":            {at: []time.Duration{0, 1, 2, 3, window}},
		"one each three minutes, for an hour": {at: []time.Duration{0, 3 * time.Minute, 6 * time.Minute, 9 * time.Minute, 12 * time.Minute,
			15 * time.Minute}},
		"a loop that goes on": {at: []time.Duration{0, 1, 2, 3, 4, window + 4, 2*window + 4}, loop: true, told: 1},
		"a loop that ended":   {at: []time.Duration{0, 1, 2, 3, 4, 2*window + 4}, told: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, start, told := NewRepairs(), time.Now(), 0
			var now time.Time
			for _, at := range tt.at {
				now = start.Add(at)
				r.Note(other, now, window) // repairs of another slot don't count
				delete(r.slots, other)
				if r.Note(slot, now, window) {
					told++
				}
			}
			want := time.Duration(0)
			if tt.loop {
				want = window
			}
			if got := r.Wait(slot, now, window); got != want || told != tt.told {
				t.Errorf("waits %s, told %d times; want %s, %d", got, told, want, tt.told)
			}
			if got := r.Wait(other, now, window); got != 0 {
				t.Errorf("the other waits %s", got)
			}
		})
	}
}

func TestRepairsAreForgotten(t *testing.T) {
	r, now := NewRepairs(), time.Now()
	for i := range 100 {
		r.Note(Slot{Name: string(rune('a' + i))}, now, time.Minute)
	}
	r.Note(Slot{Name: "later"}, now.Add(2*time.Minute), time.Minute)
	if len(r.slots) != 1 {
		t.Errorf("%d are kept, want the latest alone", len(r.slots))
	}
}

func TestLoopsThatEndedAreNotCounted(t *testing.T) {
	r, now := NewRepairs(), time.Now()
	for range loopLimit {
		r.Note(Slot{Namespace: "a", Name: "s"}, now, time.Minute)
		r.Note(Slot{Namespace: "a", Name: "other"}, now, time.Minute)
	}
	for after, want := range map[time.Duration]int{0: 1, time.Minute: 1, 2 * time.Minute: 0} {
		if got := r.Loops(Slot{Name: "s"}, now.Add(after), time.Minute); got != want {
			t.Errorf("after %s %d loops, want %d", after, got, want)
		}
	}
}
