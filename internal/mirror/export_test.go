package mirror

// Kept returns how many records the Table has, of objects that exist and of others.
func (t *Table[O, V]) Kept() (count int) {
	for _, all := range t.records {
		count += len(all)
	}
	return count + len(t.flights)
}
