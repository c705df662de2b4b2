package budget

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
)

const (
	// roomPatience bounds how long a creation waits for room. The webhook's timeout is a second.
	roomPatience = 500 * time.Millisecond
	// roomPace is how long a plan for a creation waits for more of them.
	roomPace = 2 * time.Millisecond
	// counting is how long at most a share that was written and not counted holds back creations.
	counting = time.Second
	// spreading is how long an API server may need to learn of a share that is counted.
	spreading = 10 * time.Millisecond
	// passing is how long Kubernetes takes at most from webhook room to the count of an object.
	passing = 300 * time.Millisecond
	// storing is how long it takes at most from that count until Kubernetes' own recount sees the object.
	storing = 20 * time.Millisecond
	// draining bounds how long a write of a share waits for objects that are on their way.
	draining = 60 * time.Millisecond
	// fullHolds is how long it is remembered that there was no room.
	fullHolds = time.Second
	// mostWaiting is how many creations of one namespace wait at once. Whatever is created beyond them is judged by the share as it is.
	mostWaiting = 64
)

// door stands before the share of a namespace. Kubernetes judges a creation by the share only after webhook room has answered, so the
// door remembers what it has let through and the share doesn't count yet. While a share is written and counted, the door is closed:
// Kubernetes refuses an object whose count has collided three times with other writes of the same ResourceQuota.
type door struct {
	passed []passage // by age
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

// look is what a creation finds at the door.
type look struct {
	result  string // how the creation passed; "" if it must wait
	ask     bool   // the tree must be planned
	changed <-chan struct{}
	wait    time.Duration // when to look again though nothing has changed
	door    *door
	needed  budget.Amounts // what of the request the share limits
}

// The results of looks, as metric warren_budget_rooms_total counts them.
const (
	roomUnlimited = "unlimited" // no share limits it
	roomFits      = "fits"      // the share had room
	roomRaised    = "raised"    // it had room after a wait
	roomFull      = "full"      // there is none
	roomLate      = "late"      // it was not there in time
	roomCrowded   = "crowded"   // too many wait already
)

// MakeRoom returns once a namespace has room for what is about to be created there, once it is known that there is none, or after
// roomPatience.
func (r *Reconciler) MakeRoom(ctx context.Context, namespace string, requested budget.Amounts) {
	ctx, cancel := context.WithTimeout(ctx, roomPatience)
	defer cancel()
	for waited := false; ; waited = true {
		is := r.known.lookAtDoor(namespace, requested, waited, time.Now())
		if is.result != "" {
			rooms.WithLabelValues(is.result).Inc()
			return
		}
		if is.ask {
			r.askForRoom(ctx, namespace, requested)
		}
		timer := time.NewTimer(is.wait)
		select {
		case <-is.changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		r.known.leaveDoor(is, ctx.Err() != nil)
		if ctx.Err() != nil {
			rooms.WithLabelValues(roomLate).Inc()
			return
		}
	}
}

// askForRoom has the tree planned, by this replica if it leads. Another one tells the leader as controllers do, by an Event.
func (r *Reconciler) askForRoom(ctx context.Context, namespace string, requested budget.Amounts) {
	select {
	case <-r.begun:
		if wait, refused := r.known.takeRequest(namespace, requested, time.Now()); refused {
			r.again.AddAfter(max(wait, roomPace), requestFor(treeOf(r.View.Snapshot(), namespace)))
		}
		return
	default:
	}
	now := metav1.Now()
	_ = r.Client.Create(ctx, &corev1.Event{ // if it fails, the creation is refused, and tried again, as without the webhook
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: budget.QuotaName + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ResourceQuota", Namespace: namespace, Name: budget.QuotaName},
		Reason:         refusalReasons[0], Type: corev1.EventTypeNormal, Message: budget.FormatRefusal(requested.List(), nil, nil),
		Source: corev1.EventSource{Component: v1alpha1.OperatorName}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
}

// lookAtDoor lets a creation through, or tells what it waits for. Whoever must wait calls leaveDoor afterwards.
func (k *known) lookAtDoor(namespace string, requested budget.Amounts, waited bool, now time.Time) look {
	k.mu.Lock()
	defer k.mu.Unlock()
	is := k.shares.At(placeOfShare(namespace))
	if is == nil {
		return look{result: roomUnlimited}
	}
	needed := budget.Amounts{}
	for key, amount := range requested {
		// Kubernetes doesn't limit by what it has not counted yet, and nobody but a forger asks for less than nothing.
		if _, limited := is.counted[key]; limited && amount > 0 {
			needed[key] = amount
		}
	}
	if len(needed) == 0 {
		return look{result: roomUnlimited}
	}
	d := k.doorOf(namespace, now)
	wait := d.closedFor(now)
	switch {
	case wait == 0 && d.hasRoom(is, needed, now):
		d.passed = append(d.passed, passage{needed, now})
		if waited {
			return look{result: roomRaised}
		}
		return look{result: roomFits}
	case wait == 0 && d.isFull(needed, now):
		return look{result: roomFull}
	case d.waiting >= mostWaiting:
		return look{result: roomCrowded}
	}
	d.waiting++
	if wait > 0 {
		return look{changed: d.changed, wait: wait, door: d, needed: needed}
	}
	ask := now.Sub(d.asked) >= servePause
	if ask {
		d.asked = now
	}
	return look{ask: ask, changed: d.changed, wait: servePause, door: d, needed: needed}
}

// leaveDoor ends a wait. late reports that the creation waits no longer, though it has no room: then the next one need not wait for the
// same.
func (k *known) leaveDoor(is look, late bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := is.door
	if d.waiting--; late && d.closedFor(time.Now()) == 0 {
		d.full, d.fullSince = is.needed, time.Now()
	}
}

// doorOf returns the door of a namespace that has a share. The caller holds the lock.
func (k *known) doorOf(namespace string, now time.Time) *door {
	d := k.doors[namespace]
	if d == nil {
		d = &door{changed: make(chan struct{})}
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

// sumPassed returns what has passed and is not counted yet. A nil door has let nothing through.
func (d *door) sumPassed(now time.Time) (sum budget.Amounts) {
	if d == nil {
		return nil
	}
	for len(d.passed) > 0 && now.Sub(d.passed[0].at) > passing {
		d.passed = d.passed[1:]
	}
	for _, one := range d.passed {
		for key, amount := range one.amounts {
			if sum == nil {
				sum = budget.Amounts{}
			}
			sum[key] += amount
		}
	}
	return sum
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
	var left []passage
	for _, one := range d.passed {
		if takeFrom(more, one.amounts) {
			d.stored = now
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
	if d.writing = true; len(d.passed) > 0 {
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
