package copies

// SlotsOf returns all slots that the source at slot may concern.
func (w *World) SlotsOf(slot Slot) (slots []Slot) {
	for p := w.newSpread(slot, 0); !p.isOver(); {
		slots = append(slots, p.next(w.Forest, 2)...)
	}
	return slots
}
