package copyengine

import (
	"github.com/warren-tenancy/warren/internal/copies"
)

// KeptReads returns of how many sources the State keeps what a read has shown.
func (s *State) KeptReads() int { return len(s.objects.bodies) }

// SlotsOf returns all slots that the source at slot may concern in the world w.
func SlotsOf(w *copies.World, slot copies.Slot) (slots []copies.Slot) {
	for p := newSpread(w, slot, 0); !p.isOver(); {
		slots = append(slots, p.takeSlots(w.Forest, 2)...)
	}
	return slots
}

// RememberedWatches returns of how many watches the State remembers what they have shown last.
func (s *State) RememberedWatches() (count int) {
	for _, t := range s.objects.tables {
		count += t.sources.CountWatches() + t.copies.CountWatches()
	}
	return count
}
