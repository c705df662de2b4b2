package copies

// KeptReads returns of how many sources the State keeps what a read has shown.
func (s *State) KeptReads() int { return len(s.bodies) }

// SlotsOf returns all slots that the source at slot may concern.
func (w *World) SlotsOf(slot Slot) (slots []Slot) {
	for p := w.newSpread(slot, 0); !p.isOver(); {
		slots = append(slots, p.next(w.Forest, 2)...)
	}
	return slots
}

// Recount makes the next question about the tree of root count it anew.
func (a *Allotter) Recount(root string) { delete(a.allotments, root) }

// Orphans returns how many sources are gone but have copies that count.
func (a *Allotter) Orphans() (n int) {
	for _, keys := range a.world.Copies.tally.orphaned {
		n += len(keys)
	}
	return n
}
