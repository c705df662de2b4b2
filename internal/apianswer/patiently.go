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
	// busyDelay is how long a controller waits after a 429 that doesn't state a time.
	busyDelay = time.Second
	// mostDelay is the longest wait that AskedDelay returns, even if the API server asks for a longer one.
	mostDelay = 5 * time.Minute
	// conflictDelay is how long a controller waits after the first write that lost a race (409). Usually the watch delivers the version that
	// won before that time is over.
	conflictDelay = 200 * time.Millisecond
)

// AskedDelay returns how long the API server asks to wait before the request is sent again (Retry-After), at most mostDelay. If the API
// server states no time, it returns busyDelay for a 429, and 0 for any other error. Of joined errors, the longest time counts.
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

// Patiently returns a reconciler that waits after an answer by which the API server asks to wait (see AskedDelay). It passes the request on
// to next only after twice the asked time, even if an event comes sooner (but see Hasten). The time doubles with each such answer in a row,
// up to OutageRetryMax or the asked time, whichever is longer. After a lost race (409), it waits for conflictDelay, and twice as long after
// each further one in a row, up to OutageRetryMax. But an event ends that wait, because it may bring the version that won.
func Patiently[Request comparable](next reconcile.TypedReconciler[Request]) *Patient[Request] {
	return &Patient[Request]{next: next, busy: map[Request]busyRequest{}, running: map[Request]bool{}}
}

// Patient is a reconciler that Patiently has made.
type Patient[Request comparable] struct {
	next reconcile.TypedReconciler[Request]

	mu      sync.Mutex
	busy    map[Request]busyRequest // the requests whose last try was asked to wait, or lost a race
	running map[Request]bool        // the requests under way, and whether Hasten was called for them since they began
}

type busyRequest struct {
	answers int           // how many answers in a row have asked to wait
	asked   time.Time     // until when the API server asks to wait
	until   time.Time     // when to try again
	lost    time.Duration // the wait after the last lost race; 0 if the last try lost none
}

// Hasten makes the next try of request wait only for as long as the API server asks, and not twice as long. It is for edits by users: an
// edit may revoke a right, which must not be delayed.
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

// Hastening is a predicate that lets every event through. It calls Hasten for an object whose spec was edited or whose deletion was
// requested: both raise the generation.
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
			log.FromContext(ctx).Info("another client changed the object before each write of the operator, or the watch of the object is late; "+
				"the request is tried again",
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
// just reached OutageRetryMax.
func (p *Patient[Request]) awaitWinner(request Request) (wait time.Duration, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, request)
	last := p.busy[request].lost
	wait = min(max(2*last, conflictDelay), OutageRetryMax)
	p.busy[request] = busyRequest{lost: wait}
	return wait, wait == OutageRetryMax && last < wait
}

// beginUnlessBusy returns how long request must still wait. If it need not wait, beginUnlessBusy records that it is under way, and returns
// 0.
func (p *Patient[Request]) beginUnlessBusy(request Request) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := time.Until(p.busy[request].until); wait > 0 {
		return wait
	}
	p.running[request] = false
	return 0
}

// recordAnswer records how the try of request ended, and returns how long the request must wait because the API server asked for it.
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
