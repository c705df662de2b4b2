package budget

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// pass is one plan under way: the lines of all limits and the cells of all shares, which refer to each other. They are made once, so that
// each rule costs one walk along the cells, or along the lines of each cell.
type pass struct {
	entries []*entry
	// lines are in the order of limits, and of keys within a limit.
	lines []*line
	// pending are the entries that were refused within RefusalHolds, and that can be served. Nobody else gets room for a refusal, keeps
	// unused room from those, or holds back the growth of others.
	pending []*entry
}

// line is one resource of a limit.
type line struct {
	key  corev1.ResourceName
	rank int // of the key among all keys
	hard int64
	// namespaces is how many there are below the limit, promised is what they were promised.
	namespaces, promised int64
	// taken is what no plan can give to another namespace: what is used, and what is promised where the operator may not write.
	taken int64
	// waiting is how many pending namespaces below the limit ask for the resource, recall is what they lack.
	waiting, recall int64
	// kept is what those of them ask for who keep what they have.
	kept  int64
	cells []*cell
}

// entry is a row, with its cells in the order of their keys.
type entry struct {
	*Row
	cells   []*cell
	counted bool
	again   bool    // of a pending one: as Refusal.Again
	keeps   bool    // of a pending one: it keeps unused room until it has enough
	demand  float64 // of a pending one: the largest part of what is free that it asks for
}

// cell is one resource of a share.
type cell struct {
	of              *entry
	key             corev1.ResourceName
	rank            int
	spec, used      int64
	promise         int64 // the most that the API server may admit; a share below zero is none
	share           int64 // what the namespace is to have
	requested, wish int64 // of a pending namespace: what it asks for, and by how much its unused room is to grow
	lines           []*line
}

// unset marks a resource of which a namespace has no share yet.
const unset = -1

func newPass(limits []Limit, rows []Row, refusals map[string]Refusal, now time.Time) *pass {
	p := &pass{entries: make([]*entry, len(rows))}
	keys := map[corev1.ResourceName]int{}
	for _, limit := range limits {
		for key := range limit.Hard {
			keys[key] = 0
		}
	}
	for rank, key := range sortedKeys(keys) {
		keys[key] = rank
	}
	below := make([]int, len(limits))
	for i := range rows {
		for _, l := range rows[i].Under {
			below[l]++
		}
	}
	lines := make([][]*line, len(limits))
	for l, limit := range limits {
		for _, key := range sortedKeys(limit.Hard) {
			lines[l] = append(lines[l], &line{key: key, rank: keys[key], hard: limit.Hard[key], cells: make([]*cell, 0, below[l])})
		}
		p.lines = append(p.lines, lines[l]...)
	}
	places := make([]*cell, len(keys)) // the cells of one row, by the rank of their keys
	for i := range rows {
		p.entries[i] = newEntry(&rows[i], lines, places)
	}
	p.choosePending(refusals, now)
	return p
}

// newEntry gives a share the resources of all limits above its namespace, and no others.
func newEntry(row *Row, lines [][]*line, places []*cell) *entry {
	e := &entry{Row: row, counted: row.IsCounted()}
	most := 0
	for _, l := range row.Under {
		most += len(lines[l])
	}
	// Two arrays for all: most cells have one line.
	cells, first := make([]cell, 0, most), make([]*line, most)
	for _, l := range row.Under {
		for _, line := range lines[l] {
			c := places[line.rank]
			if c == nil {
				n := len(cells)
				cells = append(cells, newCell(e, line))
				c = &cells[n]
				c.lines = first[n : n : n+1]
				places[line.rank], e.cells = c, append(e.cells, c)
			}
			c.lines, line.cells = append(c.lines, line), append(line.cells, c)
			line.namespaces++
			line.promised = addUp(line.promised, c.promise)
			if row.Fixed {
				line.taken = addUp(line.taken, c.promise)
			} else {
				line.taken = addUp(line.taken, max(c.used, 0))
			}
		}
	}
	for _, c := range e.cells {
		places[c.rank] = nil
	}
	slices.SortFunc(e.cells, func(a, b *cell) int { return cmp.Compare(a.rank, b.rank) })
	return e
}

func newCell(e *entry, l *line) cell {
	spec, ok := e.Spec[l.key]
	c := cell{of: e, key: l.key, rank: l.rank, spec: spec, used: addUp(e.Used[l.key], e.Passed[l.key]), share: spec}
	c.promise = max(spec, e.Counted[l.key], c.used, 0)
	if !ok && !e.Fixed && !e.Ending {
		c.share = unset
	}
	return c
}

// choosePending finds the namespaces that wait and can be served. If one resource that a namespace asks for is used up, it gets no room of
// another one.
func (p *pass) choosePending(refusals map[string]Refusal, now time.Time) {
	for _, e := range p.entries {
		refusal, refused := refusals[e.Namespace]
		if !refused || now.Sub(refusal.At) >= RefusalHolds || e.Fixed || e.Ending || !e.counted {
			continue
		}
		if slices.ContainsFunc(e.cells, func(c *cell) bool {
			requested, ok := refusal.Requested[c.key]
			return ok && c.free() < requested
		}) {
			continue
		}
		e.again = refusal.Again
		p.pending = append(p.pending, e)
		for _, c := range e.cells {
			if c.requested = refusal.Requested[c.key]; c.requested > 0 {
				e.demand = max(e.demand, float64(c.requested)/float64(c.free()))
				for _, l := range c.lines {
					l.waiting++
				}
			}
		}
	}
	p.chooseKeeping()
}

// chooseKeeping has the pending namespaces keep what they have that can all be served, those that ask for least first. Two that each keep a
// half of what is free, and need more, would wait for each other for ever.
func (p *pass) chooseKeeping() {
	slices.SortStableFunc(p.pending, func(a, b *entry) int { return cmp.Compare(a.demand, b.demand) })
	for _, e := range p.pending {
		e.keeps = !slices.ContainsFunc(e.cells, func(c *cell) bool {
			return slices.ContainsFunc(c.lines, func(l *line) bool { return c.requested > 0 && addUp(l.kept, c.requested) > l.hard-l.taken })
		})
		for _, c := range e.cells {
			for _, l := range c.lines {
				if e.keeps {
					l.kept = addUp(l.kept, c.requested)
				}
			}
		}
	}
}

// room is what may still be promised to a namespace, and how many namespaces share the limit that leaves the least.
func (c *cell) room() (room, namespaces int64) {
	for i, l := range c.lines {
		if left := l.hard - l.promised; i == 0 || left < room {
			room, namespaces = left, l.namespaces
		}
	}
	return room, namespaces
}

// free is what all namespaces of the limits above may still use; it may be below zero.
func (c *cell) free() int64 {
	l := c.tightest()
	return l.hard - l.taken
}

// tightest is the line above that has the least free.
func (c *cell) tightest() *line {
	return slices.MinFunc(c.lines, func(a, b *line) int { return cmp.Compare(a.hard-a.taken, b.hard-b.taken) })
}

// addUp adds two amounts that are not negative; the sum is at most the largest number.
func addUp(a, b int64) int64 { return min(a, math.MaxInt64-b) + b }
