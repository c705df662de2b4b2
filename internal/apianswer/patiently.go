package apianswer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// busyDelay is how long the API server asks to wait where it answers 429 without a time.
	busyDelay = time.Second
	// mostDelay bounds how long a wait is that an answer asks for.
	mostDelay = 5 * time.Minute
	// conflictDelay is how long a controller waits after a write that lost a race (409). Usually the watch brings the version that won sooner.
	conflictDelay = 200 * time.Millisecond
)

// AskedDelay returns how long the API server asks to wait before the request is sent again (Retry-After); 0 if it doesn't ask. Of joined
// errors, the longest time counts.
func AskedDelay(err error) (longest time.Duration) {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		for _, one := range joined.Unwrap() {
			longest = max(longest, AskedDelay(one))
		}
		return longest
	}
	if inner := errors.Unwrap(err); inner != nil {
		return AskedDelay(inner)
	}
	seconds, says := apierrors.SuggestsClientDelay(err)
	switch {
	case says && seconds > 0:
		return min(time.Duration(seconds)*time.Second, mostDelay)
	case apierrors.IsTooManyRequests(err):
		return busyDelay
	default:
		return 0
	}
}

// Patiently makes a controller wait, before it reconciles a request again, for twice as long as the API server's last answer asks
// (see AskedDelay), even if an event asks for the request sooner. The time doubles with each such answer in a row, up to OutageRetryMax.
// So does the time after a write that lost a race. There an event does begin the next try, because it may bring the version that won.
func Patiently[Request comparable](next reconcile.TypedReconciler[Request]) *Patient[Request] {
	return &Patient[Request]{next: next, busy: map[Request]busyRequest{}, running: map[Request]bool{}}
}

// Patient is a reconciler that Patiently has made.
type Patient[Request comparable] struct {
	next reconcile.TypedReconciler[Request]

	mu      sync.Mutex
	busy    map[Request]busyRequest // the requests whose last answer asked to wait, or was that a race was lost
	running map[Request]bool        // the requests under way, and whether Hasten was called for them
}

type busyRequest struct {
	answers int           // how many in a row
	asked   time.Time     // until when the API server asks to wait
	until   time.Time     // when to try again
	lost    time.Duration // how long it waits after the last of the races that it has lost in a row
}

// Hasten makes the next try of request wait only for as long as the API server asks. It is for an edit by a person, who may take a right
// away.
func (p *Patient[Request]) Hasten(request Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, runs := p.running[request]; runs {
		p.running[request] = true
	}
	if one, is := p.busy[request]; is {
		one.until = one.asked
		p.busy[request] = one
	}
}

// Hastening is a predicate that lets every event through, and calls Hasten for an object that was edited, or is to be deleted.
func Hastening(p *Patient[reconcile.Request]) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
			p.Hasten(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)})
		}
		return true
	}}
}

// Reconcile implements reconcile.TypedReconciler.
func (p *Patient[Request]) Reconcile(ctx context.Context, request Request) (reconcile.Result, error) {
	if wait := p.beginUnlessBusy(request); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	result, err := p.next.Reconcile(ctx, request)
	if lostRace(err) {
		wait, news := p.awaitWinner(request)
		if news {
			log.FromContext(ctx).Info("the object has always changed before the operator wrote it, or its watch is late; the request is tried again",
				"after", wait.String(), "answer", err.Error())
		}
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	wait := p.recordAnswer(request, err)
	if wait == 0 {
		return result, err
	}
	log.FromContext(ctx).Info("the API server is too busy; the request is tried again", "after", wait.String(), "answer", err.Error())
	return reconcile.Result{RequeueAfter: wait}, nil
}

// lostRace reports whether err is nothing but conflicts (409): another client has changed the object since the operator read it.
func lostRace(err error) bool {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return !slices.ContainsFunc(joined.Unwrap(), func(one error) bool { return !lostRace(one) })
	}
	if inner := errors.Unwrap(err); inner != nil {
		return lostRace(inner)
	}
	return apierrors.IsConflict(err)
}

// awaitWinner records that request lost a race, and returns how long it waits unless an event comes first. news reports that this time has
// just reached its longest.
func (p *Patient[Request]) awaitWinner(request Request) (wait time.Duration, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, request)
	last := p.busy[request].lost
	wait = min(max(2*last, conflictDelay), OutageRetryMax)
	p.busy[request] = busyRequest{lost: wait}
	return wait, wait == OutageRetryMax && last < wait
}

// beginUnlessBusy returns how long request must still wait, or records that it is under way.
func (p *Patient[Request]) beginUnlessBusy(request Request) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := time.Until(p.busy[request].until); wait > 0 {
		return wait
	}
	p.running[request] = false
	return 0
}

// recordAnswer records what came of request, and returns how long it must wait because of that.
func (p *Patient[Request]) recordAnswer(request Request, err error) time.Duration {
	asked := AskedDelay(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	edited := p.running[request]
	delete(p.running, request)
	if asked == 0 {
		delete(p.busy, request)
		return 0
	}
	answers := p.busy[request].answers + 1
	wait := max(asked, min(asked<<min(answers, 10), OutageRetryMax))
	if edited {
		wait = asked
	}
	p.busy[request] = busyRequest{answers: answers, asked: time.Now().Add(asked), until: time.Now().Add(wait)}
	return wait
}
