package copies

// Recount makes the next question about the tree of root count it anew.
func (a *Allotter) Recount(root string) { delete(a.allotments, root) }

// Orphans returns how many sources are gone but have copies that count.
func (a *Allotter) Orphans() (n int) {
	for _, keys := range a.world.Copies.tally.orphaned {
		n += len(keys)
	}
	return n
}
