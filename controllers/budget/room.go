package budget

import (
	"context"
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

// look is what a creation finds at the door.
type look struct {
	result  string // how the creation passed; "" if it must wait
	ask     bool   // the tree must be planned
	changed <-chan struct{}
	wait    time.Duration  // when to look again though nothing has changed
	needed  budget.Amounts // what of the request the share limits
	door    *door
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
			r.askForRoom(ctx, namespace, is.needed)
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
func (r *Reconciler) askForRoom(ctx context.Context, namespace string, needed budget.Amounts) {
	select {
	case <-r.begun:
		if wait, refused := r.known.takeRequest(namespace, needed, time.Now()); refused {
			r.again.AddAfter(max(wait, roomPace), requestFor(treeOf(r.View.Snapshot(), namespace)))
		}
		return
	default:
	}
	now := metav1.Now()
	_ = r.Client.Create(ctx, &corev1.Event{ // if it fails, the creation is refused, and tried again, as without the webhook
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: budget.QuotaName + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ResourceQuota", Namespace: namespace, Name: budget.QuotaName},
		Reason:         refusalReasons[0], Type: corev1.EventTypeNormal, Message: budget.FormatRefusal(needed.List(), nil, nil),
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
	for key := range is.counted { // not those of the request: its sender decides how many it names
		// Kubernetes doesn't limit by what it has not counted yet, and nobody but a forger asks for less than nothing.
		if amount := requested[key]; amount > 0 {
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
		d.letPass(needed, now)
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
		return look{changed: d.changed, wait: wait, needed: needed, door: d}
	}
	ask := now.Sub(d.asked) >= servePause
	if ask {
		d.asked = now
	}
	return look{ask: ask, changed: d.changed, wait: servePause, needed: needed, door: d}
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
