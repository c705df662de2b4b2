package mirror

// Kept returns of how many places the Table knows something, and how many requests are under way.
func (t *Table[O, V]) Kept() (count int) {
	for p := range t.traces {
		if t.At(p) == nil {
			count++
		}
	}
	for range t.All() {
		count++
	}
	return count + len(t.flights)
}
