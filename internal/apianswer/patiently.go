package apianswer

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// busyDelay is how long the API server asks to wait where it answers 429 without a time.
const busyDelay = time.Second

// AskedDelay returns how long the API server asks to wait before the request is sent again (Retry-After); 0 if it doesn't ask.
func AskedDelay(err error) time.Duration {
	seconds, says := apierrors.SuggestsClientDelay(err)
	switch {
	case says && seconds > 0:
		return time.Duration(seconds) * time.Second
	case apierrors.IsTooManyRequests(err):
		return busyDelay
	default:
		return 0
	}
}

// Patiently makes a controller wait, before it reconciles a request again, for twice as long as the API server's last answer asks
// (see AskedDelay), even if an event asks for the request sooner. The time doubles with each such answer in a row, up to OutageRetryMax.
func Patiently[Request comparable](next reconcile.TypedReconciler[Request]) *Patient[Request] {
	return &Patient[Request]{next: next, busy: map[Request]busyRequest{}}
}

// Patient is a reconciler that Patiently has made.
type Patient[Request comparable] struct {
	next reconcile.TypedReconciler[Request]

	mu   sync.Mutex
	busy map[Request]busyRequest // the requests whose last answer asked to wait
}

type busyRequest struct {
	answers int       // how many in a row
	asked   time.Time // until when the API server asks to wait
	until   time.Time // when to try again
}

// Hasten makes the next try of request wait only for as long as the API server asks. It is for an edit by a person, who may take a right
// away.
func (p *Patient[Request]) Hasten(request Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, is := p.busy[request]; is {
		one.until = one.asked
		p.busy[request] = one
	}
}

// Reconcile implements reconcile.TypedReconciler.
func (p *Patient[Request]) Reconcile(ctx context.Context, request Request) (reconcile.Result, error) {
	if wait := time.Until(p.busyOf(request).until); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	result, err := p.next.Reconcile(ctx, request)
	asked := AskedDelay(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if asked == 0 {
		delete(p.busy, request)
		return result, err
	}
	answers := p.busy[request].answers + 1
	wait := max(asked, min(asked<<min(answers, 10), OutageRetryMax))
	p.busy[request] = busyRequest{answers, time.Now().Add(asked), time.Now().Add(wait)}
	return reconcile.Result{RequeueAfter: wait}, nil
}

func (p *Patient[Request]) busyOf(request Request) busyRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy[request]
}
