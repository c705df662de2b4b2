package budget

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// recallsAtOnce is how many shares one pass lowers for a resource, so that a large tree doesn't wait for the writes of one request. The
// next pass lowers more.
const recallsAtOnce = 32

// Plan returns the shares that must be written, in the order of rows: none if all is as it should be. A share that is raised fits into what
// is room now. A share that is lowered makes room in a later pass, when the API server has counted it. refusals are by namespace.
func Plan(limits []Limit, rows []Row, refusals map[string]Refusal, now time.Time) []Share {
	p := newPass(limits, rows, refusals, now)
	// The order of the rules is the order in which they take room.
	p.chooseKeys()   // a share has the keys of all limits above, and no others
	p.givePending()  // a namespace that was refused waits, and so does a person
	p.giveFirst()    // a new namespace starts with little: it may never need more
	p.recallShares() // what is missing for these two, and what a lowered limit takes back
	p.growLow()      // room that nobody waits for spares the next refusal
	return p.listChanges()
}

// pass is one plan under way.
type pass struct {
	limits []Limit
	rows   []Row
	shares []Amounts // what each row is to have, by the index of the row
	sums   []sum     // by the index of the limit
	// pending are the rows that were refused within RefusalHolds, by index. They keep a fair part of what is free, unless a limit is exceeded.
	pending map[int]Refusal
	// recall is what is missing below a limit for the namespaces that were refused, by the index of the limit.
	recall []Amounts
	// waiting is how many namespaces below a limit were refused a resource, and can be served, by the index of the limit.
	waiting []Amounts
}

// sum is what stands below one limit.
type sum struct {
	namespaces     int64
	promised, used Amounts
}

func newPass(limits []Limit, rows []Row, refusals map[string]Refusal, now time.Time) *pass {
	p := &pass{limits: limits, rows: rows, shares: make([]Amounts, len(rows)), sums: make([]sum, len(limits)),
		pending: map[int]Refusal{}, recall: make([]Amounts, len(limits)), waiting: make([]Amounts, len(limits))}
	for i, used := range SumUsed(limits, rows) {
		p.sums[i] = sum{promised: Amounts{}, used: used}
		p.recall[i], p.waiting[i] = Amounts{}, Amounts{}
	}
	for i := range rows {
		row := &rows[i]
		p.shares[i] = maps.Clone(row.Spec)
		if refusal, ok := refusals[row.Namespace]; ok && now.Sub(refusal.At) < RefusalHolds && !row.Fixed && !row.Ending {
			p.pending[i] = refusal
		}
		for _, l := range row.Under {
			p.sums[l].namespaces++
			for key := range limits[l].Hard {
				p.sums[l].promised.add(key, row.promise(key))
			}
		}
	}
	return p
}

// chooseKeys gives each share the keys of all limits above its namespace, with -1 for a key that it has no amount of yet.
func (p *pass) chooseKeys() {
	for i := range p.rows {
		row := &p.rows[i]
		if row.Fixed || row.Ending {
			continue
		}
		var share Amounts
		for _, l := range row.Under {
			for key := range p.limits[l].Hard {
				if share == nil {
					share = Amounts{}
				}
				if amount, ok := row.Spec[key]; ok {
					share[key] = amount
				} else {
					share[key] = unset
				}
			}
		}
		p.shares[i] = share
	}
}

// unset marks a key of which a namespace has no share yet.
const unset = -1

// giveFirst gives each key that is unset an amount: half of what the room would be for each namespace, and at least a unit while there is
// room.
func (p *pass) giveFirst() {
	for i, share := range p.shares {
		for _, key := range sortedKeys(share) {
			if share[key] != unset || p.rows[i].Fixed {
				continue
			}
			room, namespaces := p.roomFor(i, key)
			p.raiseShare(i, key, min(room, max(room/(2*namespaces), unitOf(key))))
		}
	}
}

// givePending gives a namespace that was refused what it was refused, or more: so large a part of what is free that a controller which
// creates many objects, and waits longer after each refusal, is refused a few times only. It notes what must be recalled for that.
func (p *pass) givePending() {
	// All wishes are known before anything is given: to serve one namespace doesn't make the parts of the others larger.
	wishes := map[int]Amounts{}
	p.countWaiting()
	for i, refusal := range p.pending {
		if p.canServe(i, refusal) {
			wishes[i] = p.planWish(i, refusal)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(wishes)) {
		for _, key := range sortedKeys(wishes[i]) {
			p.noteRecall(i, key, wishes[i][key])
			room, _ := p.roomFor(i, key)
			p.raiseShare(i, key, min(wishes[i][key], room))
		}
	}
}

// countWaiting counts the refused namespaces below each limit, by resource.
func (p *pass) countWaiting() {
	for i, refusal := range p.pending {
		if !p.canServe(i, refusal) {
			continue
		}
		for key := range refusal.Requested {
			for _, l := range p.rows[i].Under {
				if _, limited := p.limits[l].Hard[key]; limited {
					p.waiting[l].add(key, 1)
				}
			}
		}
	}
}

// planWish is by how much the promise to a refused namespace is to grow. One that was refused again has the room for its next objects
// before it is refused once more.
func (p *pass) planWish(i int, refusal Refusal) Amounts {
	wish := Amounts{}
	for key, requested := range refusal.Requested {
		share, limited := p.shares[i][key]
		if !limited || share == unset {
			continue
		}
		unused, part := max(share-p.rows[i].Used[key], 0), p.fairPart(i, key, refusal)
		if share-p.rows[i].Used[key] < requested || refusal.Again && unused < part/2 {
			wish[key] = part - unused
		}
	}
	return wish
}

// canServe reports whether a refused object fits into what is free. If one resource is used up, no namespace loses room of another for it.
func (p *pass) canServe(i int, refusal Refusal) bool {
	if !p.rows[i].IsCounted() {
		return false
	}
	for key, requested := range refusal.Requested {
		if _, limited := p.shares[i][key]; limited && p.freeFor(i, key) < requested {
			return false
		}
	}
	return true
}

// fairPart is which amount of what is free a refused namespace may have unused: what its object needs, and at least an equal part among
// those that were refused below the same limit, and one part that stays free unless the namespace was refused shortly before.
func (p *pass) fairPart(i int, key corev1.ResourceName, refusal Refusal) int64 {
	parts := p.waiting[p.tightestLimit(i, key)][key]
	if !refusal.Again {
		parts++
	}
	return max(refusal.Requested[key], p.freeFor(i, key)/max(parts, 1))
}

// noteRecall notes by how much the room below each limit above a namespace is too small for a wish, if one of them has too little room.
func (p *pass) noteRecall(i int, key corev1.ResourceName, wish int64) {
	if room, _ := p.roomFor(i, key); wish <= room {
		return
	}
	for _, l := range p.rows[i].Under {
		if hard, ok := p.limits[l].Hard[key]; ok {
			p.recall[l].add(key, max(wish-max(hard-p.sums[l].promised[key], 0), 0))
		}
	}
}

// recallShares lowers the shares with most unused room, never below what is used, until what is missing below each limit is covered. A
// limit that was lowered below what is promised misses the difference.
func (p *pass) recallShares() {
	for l, limit := range p.limits {
		for _, key := range sortedKeys(limit.Hard) {
			excess := max(p.sums[l].promised[key]-limit.Hard[key], 0)
			p.lowerShares(l, key, excess-p.onTheWay(l, key), true)
			p.lowerShares(l, key, p.recall[l][key]+excess-p.onTheWay(l, key), false)
		}
	}
}

// onTheWay is what lowered shares below a limit give back as soon as the API server has counted them.
func (p *pass) onTheWay(l int, key corev1.ResourceName) (amount int64) {
	for i := range p.rows {
		if row := &p.rows[i]; slices.Contains(row.Under, l) {
			amount += max(row.promise(key)-max(p.shares[i][key], row.Used[key]), 0)
		}
	}
	return amount
}

// lowerShares takes what is missing below a limit. A namespace that was refused keeps its fair part, unless all is true.
func (p *pass) lowerShares(l int, key corev1.ResourceName, missing int64, all bool) {
	if missing <= 0 {
		return
	}
	type unused struct {
		row    int
		amount int64
	}
	var candidates []unused
	for i, share := range p.shares {
		if p.rows[i].Fixed || share[key] <= p.rows[i].Used[key] || !slices.Contains(p.rows[i].Under, l) {
			continue
		}
		amount := share[key] - p.rows[i].Used[key]
		if refusal, waits := p.pending[i]; waits && !all {
			amount -= p.fairPart(i, key, refusal)
		}
		if amount > 0 {
			candidates = append(candidates, unused{i, amount})
		}
	}
	slices.SortStableFunc(candidates, func(a, b unused) int { return cmp.Compare(b.amount, a.amount) })
	for n, c := range candidates {
		if n == recallsAtOnce || missing <= 0 {
			return
		}
		amount := min(c.amount, missing)
		p.shares[c.row][key] -= amount
		missing -= amount
	}
}

// growLow raises a share of which an eighth or less is unused, by what is used and at most a quarter of the room, so that most objects are
// never refused. While the resource is kept for a namespace that was refused, no share below the same limit grows.
func (p *pass) growLow() {
	for i, share := range p.shares {
		row := &p.rows[i]
		if row.Fixed || row.Ending || !row.IsCounted() {
			continue
		}
		for _, key := range sortedKeys(share) {
			unused, room := share[key]-row.Used[key], int64(0)
			if room, _ = p.roomFor(i, key); p.isKept(i, key) || share[key] < row.Spec[key] {
				continue
			}
			step := max(room/4, unitOf(key))
			if unused <= share[key]/8 && unused < step {
				p.raiseShare(i, key, min(max(row.Used[key], unitOf(key)), step, room))
			}
		}
	}
}

// isKept reports whether the resource is kept for a namespace below one of the same limits that was refused.
func (p *pass) isKept(i int, key corev1.ResourceName) bool {
	return slices.ContainsFunc(p.rows[i].Under, func(l int) bool { return p.waiting[l][key] > 0 })
}

// raiseShare adds an amount to a share, and to what is promised below the limits above; an amount below 0 counts as 0. A share that is less
// than what is used begins at what is used: objects that a namespace brought along are promised already.
func (p *pass) raiseShare(i int, key corev1.ResourceName, amount int64) {
	before := p.rows[i].promise(key)
	if p.shares[i][key] != unset {
		before = max(before, p.shares[i][key])
	}
	p.shares[i][key] = max(p.shares[i][key], p.rows[i].Used[key], 0) + max(amount, 0)
	if more := p.shares[i][key] - before; more > 0 {
		for _, l := range p.rows[i].Under {
			p.sums[l].promised[key] += more
		}
	}
}

// roomFor is what may still be promised to a namespace, and how many namespaces share the limit that leaves the least.
func (p *pass) roomFor(i int, key corev1.ResourceName) (room, namespaces int64) {
	first := true
	for _, l := range p.rows[i].Under {
		hard, ok := p.limits[l].Hard[key]
		if left := hard - p.sums[l].promised[key]; ok && (first || left < room) {
			room, namespaces, first = left, p.sums[l].namespaces, false
		}
	}
	return room, namespaces
}

// freeFor is what all namespaces of the limits above a namespace may still use; it may be below zero.
func (p *pass) freeFor(i int, key corev1.ResourceName) int64 {
	l := p.tightestLimit(i, key)
	return p.limits[l].Hard[key] - p.sums[l].used[key]
}

// tightestLimit is the index of the limit above a namespace that has the least free of a resource.
func (p *pass) tightestLimit(i int, key corev1.ResourceName) int {
	least, at := int64(0), -1
	for _, l := range p.rows[i].Under {
		if hard, ok := p.limits[l].Hard[key]; ok && (at < 0 || hard-p.sums[l].used[key] < least) {
			least, at = hard-p.sums[l].used[key], l
		}
	}
	return at
}

// listChanges returns the shares that differ from what is written.
func (p *pass) listChanges() (all []Share) {
	for i, share := range p.shares {
		row := &p.rows[i]
		same := maps.Equal(share, row.Spec) && (share == nil) == (row.Spec == nil)
		if !row.Fixed && !same {
			all = append(all, Share{row.Namespace, share})
		}
	}
	return all
}

func sortedKeys(amounts Amounts) []corev1.ResourceName { return slices.Sorted(maps.Keys(amounts)) }
