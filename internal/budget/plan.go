package budget

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// recallsAtOnce is how many shares one pass lowers for a resource, so that a large tree doesn't wait for the writes of one request. The
// next pass lowers more.
const recallsAtOnce = 32

// Plan returns the shares that must be written, in the order of rows: none if all is as it should be. A share that is raised fits into what
// is room now. A share that is lowered makes room in a later pass, when the API server has counted it. refusals are by namespace. The cost
// is proportional to the resources of all limits, each as often as there are namespaces below it.
func Plan(limits []Limit, rows []Row, refusals map[string]Refusal, now time.Time) []Share {
	p := newPass(limits, rows, refusals, now)
	// The order of the rules is the order in which they take room.
	p.givePending()  // a namespace that was refused waits, and so does a person
	p.giveFirst()    // a new namespace starts with little: it may never need more
	p.recallShares() // what is missing for these two, and what a lowered limit takes back
	p.growLow()      // room that nobody waits for spares the next refusal
	return p.listChanges()
}

// giveFirst gives each cell that is unset an amount: half of what the room would be for each namespace, and at least a unit while there is
// room.
func (p *pass) giveFirst() {
	for _, e := range p.entries {
		for _, c := range e.cells {
			if c.share == unset && !e.Fixed {
				room, namespaces := c.room()
				c.raise(min(room, max(room/(2*namespaces), unitOf(c.key))))
			}
		}
	}
}

// givePending gives a namespace that was refused what it was refused, or more: so large a part of what is free that a controller which
// creates many objects, and waits longer after each refusal, is refused a few times only. It notes what must be recalled for that.
func (p *pass) givePending() {
	// All wishes are known before anything is given: to serve one namespace doesn't make the parts of the others larger.
	for _, e := range p.pending {
		for _, c := range e.cells {
			c.planWish()
		}
	}
	for _, e := range p.pending {
		for _, c := range e.cells {
			if c.wish > 0 {
				c.noteRecall()
				room, _ := c.room()
				c.raise(min(c.wish, room))
			}
		}
	}
}

// planWish plans by how much the promise to a refused namespace is to grow. One that was refused again has the room for its next objects
// before it is refused once more.
func (c *cell) planWish() {
	if c.requested == 0 || c.share == unset {
		return
	}
	unused, part := max(c.share-c.used, 0), c.fairPart()
	if c.share-c.used < c.requested || c.of.again && unused < part/2 {
		c.wish = part - unused
	}
}

// fairPart is which amount of what is free a refused namespace may have unused: what its object needs, and at least an equal part among
// those that were refused below the same limit, and one part that stays free unless the namespace was refused it shortly before.
func (c *cell) fairPart() int64 {
	l := c.tightest()
	parts := l.waiting
	if !c.of.again || c.requested == 0 {
		parts++
	}
	return max(c.requested, (l.hard-l.taken)/max(parts, 1))
}

// noteRecall notes by how much the room below each limit above a namespace is too small for its wish, if one of them has too little room.
func (c *cell) noteRecall() {
	if room, _ := c.room(); c.wish <= room {
		return
	}
	for _, l := range c.lines {
		l.recall = addUp(l.recall, max(c.wish-max(l.hard-l.promised, 0), 0))
	}
}

// recallShares lowers the shares with most unused room, never below what is used, until what is missing below each limit is covered. A
// limit that was lowered below what is promised misses the difference.
func (p *pass) recallShares() {
	for _, l := range p.lines {
		excess := max(l.promised-l.hard, 0)
		l.lowerShares(excess-l.onTheWay(), true)
		l.lowerShares(l.recall+excess-l.onTheWay(), false)
	}
}

// onTheWay is what lowered shares give back as soon as the API server has counted them.
func (l *line) onTheWay() (amount int64) {
	for _, c := range l.cells {
		amount += max(c.promise-max(c.share, c.used), 0)
	}
	return amount
}

// lowerShares takes what is missing below a limit. A namespace that keeps what it has for a refusal keeps its fair part, unless all is
// true.
func (l *line) lowerShares(missing int64, all bool) {
	if missing <= 0 {
		return
	}
	type unused struct {
		*cell
		amount int64
	}
	var candidates []unused
	for _, c := range l.cells {
		if c.of.Fixed || c.share <= c.used {
			continue
		}
		amount := c.share - c.used
		if c.of.keeps && !all {
			amount -= c.fairPart()
		}
		if amount > 0 {
			candidates = append(candidates, unused{c, amount})
		}
	}
	slices.SortStableFunc(candidates, func(a, b unused) int { return cmp.Compare(b.amount, a.amount) })
	for n, c := range candidates {
		if n == recallsAtOnce || missing <= 0 {
			return
		}
		amount := min(c.amount, missing)
		c.share -= amount
		missing -= amount
	}
}

// growLow raises a share of which an eighth or less is unused, by what is used and at most a quarter of the room, so that most objects are
// never refused. While the resource is kept for a namespace that was refused, no share below the same limit grows.
func (p *pass) growLow() {
	for _, e := range p.entries {
		if e.Fixed || e.Ending || !e.counted {
			continue
		}
		for _, c := range e.cells {
			unused := c.share - c.used
			if unused > c.share/8 || c.share < c.spec || c.isKept() {
				continue
			}
			room, _ := c.room()
			if step := max(room/4, unitOf(c.key)); unused < step {
				c.raise(min(max(c.used, unitOf(c.key)), step, room))
			}
		}
	}
}

// isKept reports whether the resource is kept for a namespace below one of the same limits that was refused.
func (c *cell) isKept() bool {
	return slices.ContainsFunc(c.lines, func(l *line) bool { return l.waiting > 0 })
}

// raise adds an amount to a share, and to what is promised below the limits above; an amount below 0 counts as 0. A share that is less
// than what is used begins at what is used: objects that a namespace brought along are promised already.
func (c *cell) raise(amount int64) {
	before := max(c.promise, c.share)
	c.share = max(c.share, c.used, 0) + max(amount, 0)
	if more := c.share - before; more > 0 {
		for _, l := range c.lines {
			l.promised += more
		}
	}
}

// listChanges returns the shares that differ from what is written.
func (p *pass) listChanges() (all []Share) {
	for _, e := range p.entries {
		if !e.Fixed && (e.Open || e.isChanged()) {
			all = append(all, Share{e.Namespace, e.amounts()})
		}
	}
	return all
}

func (e *entry) isChanged() bool {
	if !e.Ending && (len(e.cells) != len(e.Spec) || (e.Spec == nil) != (len(e.cells) == 0)) {
		return true
	}
	return slices.ContainsFunc(e.cells, func(c *cell) bool {
		was, ok := e.Spec[c.key]
		return c.share != was || !ok && !e.Ending
	})
}

// amounts returns the share. That of a namespace that terminates keeps its resources.
func (e *entry) amounts() (share Amounts) {
	if e.Ending {
		share = maps.Clone(e.Spec)
	} else if len(e.cells) > 0 {
		share = make(Amounts, len(e.cells))
	}
	for _, c := range e.cells {
		if _, ok := share[c.key]; ok || !e.Ending {
			share[c.key] = c.share
		}
	}
	return share
}
