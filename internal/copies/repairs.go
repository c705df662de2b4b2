package copies

import (
	"maps"
	"time"
)

// loopLimit is how often the operator repairs a copy within a window before it assumes that another client changes the
// copy in a loop. From then on it repairs the copy once in a window, until the copy has needed no repair for two
// windows.
const loopLimit = 5

// Repairs remember the copies that the operator has repaired lately, and those that somebody changes in a loop.
// They have no lock: whoever holds them calls one method after the other.
type Repairs struct {
	slots  map[Slot]*repair
	pruned time.Time // when old entries of slots were last dropped: once in a window, as there may be very many
}

// NewRepairs returns empty Repairs.
func NewRepairs() *Repairs { return &Repairs{slots: map[Slot]*repair{}} }

type repair struct {
	times []time.Time // of repairs, the latest last, at most loopLimit
	loop  bool
}

func (r *repair) lastTime() time.Time { return r.times[len(r.times)-1] }

// isPast reports whether the last repair is so old that it no longer counts.
func (r *repair) isPast(now time.Time, window time.Duration) bool {
	return now.Sub(r.lastTime()) >= 2*window
}

// Note adds a repair of the copy at slot. It returns true if the copy counts as changed in a loop with this repair, and
// did not before.
func (r *Repairs) Note(slot Slot, now time.Time, window time.Duration) (loop bool) {
	if now.Sub(r.pruned) >= window {
		maps.DeleteFunc(r.slots, func(_ Slot, known *repair) bool { return known.isPast(now, window) })
		r.pruned = now
	}
	known := r.slots[slot]
	if known == nil || known.isPast(now, window) {
		known = &repair{}
		r.slots[slot] = known
	}
	was := known.loop
	known.times = append(known.times, now)
	if known.times = known.times[max(0, len(known.times)-loopLimit):]; len(known.times) == loopLimit {
		known.loop = was || now.Sub(known.times[0]) < window
	}
	return known.loop && !was
}

// Wait returns how long the copy at slot is still to be left as it is because somebody changes it in a loop; 0 outside
// of a loop.
func (r *Repairs) Wait(slot Slot, now time.Time, window time.Duration) time.Duration {
	if known := r.slots[slot]; known != nil && known.loop {
		return max(0, known.lastTime().Add(window).Sub(now))
	}
	return 0
}

// Loops counts the copies of a kind and name that somebody changes in a loop.
func (r *Repairs) Loops(of Slot, now time.Time, window time.Duration) (n int) {
	for slot, known := range r.slots {
		if known.loop && !known.isPast(now, window) && slot.At("") == of.At("") {
			n++
		}
	}
	return n
}

// IsRepair reports whether a PUT of this action over a copy undoes a change by another client, rather than following
// the source.
func IsRepair(over *Copy, action Action) bool {
	return (over.Drifted || over.Marked) && over.Hash == action.Hash
}
