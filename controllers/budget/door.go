package budget

import (
	"context"
	"maps"
	"time"

	"github.com/warren-tenancy/warren/internal/budget"
)

// door stands before the share of a namespace. Kubernetes judges a creation by the share only after webhook room has answered, so the
// door remembers what it has let through and the share doesn't count yet. While a share is written and counted, the door is closed:
// Kubernetes refuses an object whose count has collided three times with other writes of the same ResourceQuota.
type door struct {
	passed []passage      // by age
	sum    budget.Amounts // of passed
	// doubted reports that nothing that has passed was counted lately, as with forged reviews: then it counts for nothing.
	doubted bool
	// writing reports that a worker writes the share, or waits for what has passed.
	writing bool
	// uncounted is since when the share is not counted as it was written, counted is when that ended. Both may be zero.
	uncounted, counted time.Time
	// stored is when the last object was counted.
	stored time.Time
	// asked is when the tree was last planned for this door; zero if the share has changed since.
	asked time.Time
	// full is for what there was no room at fullSince.
	full      budget.Amounts
	fullSince time.Time
	waiting   int
	changed   chan struct{} // closed when those who wait must look again
}

type passage struct {
	amounts budget.Amounts
	at      time.Time
}

// doorOf returns the door of a namespace that has a share. The caller holds the lock.
func (k *known) doorOf(namespace string, now time.Time) *door {
	d := k.doors[namespace]
	if d == nil {
		d = &door{changed: make(chan struct{}), sum: budget.Amounts{}}
		k.doors[namespace] = d
		d.takeCount(k.shares.At(placeOfShare(namespace)), now)
	}
	return d
}

// closedFor returns how long the door stays closed at least; 0 if it is open.
func (d *door) closedFor(now time.Time) time.Duration {
	switch {
	case d.writing:
		return counting
	case !d.uncounted.IsZero():
		return max(counting-now.Sub(d.uncounted), 0)
	}
	return max(spreading-now.Sub(d.counted), 0)
}

// hasRoom reports whether a share admits what is needed beside what has passed.
func (d *door) hasRoom(is *share, needed budget.Amounts, now time.Time) bool {
	passed := d.sumPassed(now)
	for key, amount := range needed {
		most := is.counted[key]
		if spec, planned := is.spec[key]; planned {
			most = min(most, spec)
		}
		if most-is.used[key]-passed[key] < amount {
			return false
		}
	}
	return true
}

// letPass remembers what has passed.
func (d *door) letPass(needed budget.Amounts, now time.Time) {
	for key, amount := range needed {
		d.sum[key] += amount
	}
	d.passed = append(d.passed, passage{needed, now})
}

// sumPassed returns what has passed and is not counted yet. A nil door has let nothing through. The caller holds the lock, and changes
// nothing.
func (d *door) sumPassed(now time.Time) budget.Amounts {
	if d == nil {
		return nil
	}
	for len(d.passed) > 0 && now.Sub(d.passed[0].at) > passing {
		d.doubted = d.doubted || now.Sub(d.stored) > passing
		d.forgetPassage(d.passed[0])
		d.passed = d.passed[1:]
	}
	if d.doubted {
		return nil
	}
	return d.sum
}

func (d *door) forgetPassage(one passage) {
	for key, amount := range one.amounts {
		d.sum[key] -= amount
	}
}

// isFull reports whether there was no room for as much shortly before.
func (d *door) isFull(needed budget.Amounts, now time.Time) bool {
	if d.full == nil || now.Sub(d.fullSince) > fullHolds {
		return false
	}
	for key, amount := range d.full {
		if needed[key] < amount {
			return false
		}
	}
	return true
}

// takeAtDoor takes in that a share has changed, and wakes those who wait. The caller holds the lock.
func (k *known) takeAtDoor(d *door, c shareChange, now time.Time) {
	if c.Is == nil {
		delete(k.doors, c.Place.Namespace)
	} else {
		d.takeShare(c.Was, c.Is, now)
	}
	d.wake()
}

func (d *door) takeShare(was, is *share, now time.Time) {
	d.takeCount(is, now)
	more := budget.Amounts{}
	for key, used := range is.used {
		if was != nil && used > was.used[key] {
			more[key] = used - was.used[key]
		}
	}
	if len(more) > 0 {
		d.stored, d.doubted = now, false
	}
	var left []passage
	for _, one := range d.passed {
		if takeFrom(more, one.amounts) {
			d.forgetPassage(one)
		} else {
			left = append(left, one)
		}
	}
	d.passed = left
	if was == nil || !maps.Equal(was.spec, is.spec) {
		d.asked, d.full = time.Time{}, nil
	}
}

// takeFrom takes amounts from what there is, if it has all of them.
func takeFrom(is, amounts budget.Amounts) bool {
	for key, amount := range amounts {
		if is[key] < amount {
			return false
		}
	}
	for key, amount := range amounts {
		is[key] -= amount
	}
	return true
}

// takeCount notes whether a share is counted as it was written.
func (d *door) takeCount(is *share, now time.Time) {
	switch isCounted := maps.Equal(is.counted, is.spec); {
	case !isCounted && d.uncounted.IsZero():
		d.uncounted = now
	case isCounted && !d.uncounted.IsZero():
		d.uncounted, d.counted = time.Time{}, now
	}
}

// wake has those who wait look again.
func (d *door) wake() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// closeDoor lets nothing pass to a share until openDoor, and waits for what has passed: until it is counted and stored, or was refused.
// Otherwise the write of the share collides with Kubernetes' own, and its recount may miss objects that were just admitted.
func (k *known) closeDoor(ctx context.Context, namespace string) {
	for end := time.Now().Add(draining); ; {
		changed, wait := k.tryClose(namespace, time.Now())
		wait = min(wait, time.Until(end))
		if wait <= 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			end = time.Now()
		}
		timer.Stop()
	}
}

// tryClose closes the door, and returns how long to wait for what has passed at most.
func (k *known) tryClose(namespace string, now time.Time) (changed <-chan struct{}, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shares.At(placeOfShare(namespace)) == nil {
		return nil, 0
	}
	d := k.doorOf(namespace, now)
	if d.writing = true; len(d.passed) > 0 && !d.doubted {
		return d.changed, passing
	}
	return d.changed, storing - now.Sub(d.stored)
}

// openDoor ends what closeDoor has begun. A door that nobody needs goes.
func (k *known) openDoor(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.doors[namespace]
	if d == nil {
		return
	}
	d.writing = false
	d.wake()
	if len(d.passed) == 0 && d.waiting == 0 {
		delete(k.doors, namespace)
	}
}

// noteFull tells those who wait below a tree that its plan had no room for what they asked.
func (k *known) noteFull(t *tree, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range t.rows {
		row := &t.rows[i]
		d, refusal := k.doors[row.Namespace], t.asked[row.Namespace]
		if d != nil && d.waiting > 0 && row.Lacks(refusal.Requested) {
			d.full, d.fullSince = refusal.Requested, now
			d.wake()
		}
	}
}
