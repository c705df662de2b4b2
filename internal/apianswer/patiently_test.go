package apianswer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

// After a busy answer, a controller waits for at least the time that the API server asks for, up to five minutes. After other errors, its
// rate limiter decides.
func TestPatiently(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		err, want error
		again     time.Duration
	}{
		"no error":         {},
		"an answer's time": {err: fmt.Errorf("writing: %w", apierrors.NewTooManyRequests("busy", 3)), again: 6 * time.Second},
		"a long time":      {err: apierrors.NewTooManyRequests("busy", 50), again: 50 * time.Second},
		"the longest time": {err: errors.Join(broken, fmt.Errorf("writing: %w", apierrors.NewTooManyRequests("busy", 2)),
			apierrors.NewTooManyRequests("busy", 1)), again: 4 * time.Second},
		"a time without end": {err: apierrors.NewTooManyRequests("busy", 86_400), again: 5 * time.Minute},
		"busy, no time":      {err: apierrors.NewTooManyRequests("busy", 0), again: 2 * time.Second},
		"no time is said":    {err: broken, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := apianswer.Patiently(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, tc.err
			})).Reconcile(t.Context(), reconcile.Request{})
			if got.RequeueAfter != tc.again || !errors.Is(err, tc.want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// An event doesn't make a controller try again sooner than the API server asks for, and each busy answer in a row makes it wait longer.
func TestPatientlyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries int
		var answer error = apierrors.NewTooManyRequests("busy", 1)
		r := apianswer.Patiently(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			tries++
			return reconcile.Result{}, answer
		}))
		next := func() time.Duration {
			t.Helper()
			result, err := r.Reconcile(t.Context(), reconcile.Request{})
			if err != nil {
				t.Fatal(err)
			}
			return result.RequeueAfter
		}
		for i, want := range []time.Duration{2, 4, 8, 16, 30, 30} {
			if got := next(); got != want*time.Second || tries != i+1 {
				t.Fatalf("after %d busy answers it waits %s, not %s", tries, got, want*time.Second)
			}
			time.Sleep(500 * time.Millisecond)
			if got := next(); got != want*time.Second-500*time.Millisecond || tries != i+1 {
				t.Fatalf("an event after half a second: waits %s more, %d tries", got, tries)
			}
			time.Sleep(want * time.Second)
		}
		next()
		r.Hasten(reconcile.Request{})
		if got := next(); got != time.Second {
			t.Fatalf("after an edit it waits %s, not as long as the API server asks", got)
		}
		time.Sleep(time.Second)
		answer = nil
		if got := next(); got != 0 {
			t.Fatalf("waits %s after success", got)
		}
		answer = apierrors.NewTooManyRequests("busy", 1)
		if got := next(); got != 2*time.Second {
			t.Fatalf("after a success, the first busy answer waits %s", got)
		}
	})
}

// A write that lost a race is tried again when an event comes, and else less and less often: the watch may be late.
func TestPatientlyAwaitsWhoWon(t *testing.T) {
	lost := apierrors.NewConflict(secrets, "s", errors.New("changed"))
	answer, tries := fmt.Errorf("removing the finalizer: %w", lost), 0
	r := apianswer.Patiently(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		tries++
		return reconcile.Result{}, errors.Join(answer)
	}))
	for i, want := range []time.Duration{200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000} {
		result, err := r.Reconcile(t.Context(), reconcile.Request{}) // at once, as after an event
		if err != nil || result.RequeueAfter != want*time.Millisecond || tries != i+1 {
			t.Fatalf("the try %d waits %s, error %v", tries, result.RequeueAfter, err)
		}
	}
	answer = errors.Join(lost, errors.New("broken"))
	if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("the other error is lost")
	}
	answer = lost
	if result, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter != 200*time.Millisecond {
		t.Errorf("after another answer it waits %s, error %v", result.RequeueAfter, err)
	}
}

// Lost races say nothing of how busy the API server is.
func TestLostRacesDontLengthenAnAskedWait(t *testing.T) {
	var answer error = apierrors.NewConflict(secrets, "s", errors.New("changed"))
	r := apianswer.Patiently(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, answer
	}))
	for range 8 {
		_, _ = r.Reconcile(t.Context(), reconcile.Request{})
	}
	answer = apierrors.NewTooManyRequests("busy", 1)
	if result, _ := r.Reconcile(t.Context(), reconcile.Request{}); result.RequeueAfter != 2*time.Second {
		t.Errorf("the first 429 waits %s", result.RequeueAfter)
	}
}

// If an object is edited while a pass for it is under way, the next pass also begins as soon as the API server allows.
func TestPatientlyHastensWhatIsUnderWay(t *testing.T) {
	var p *apianswer.Patient[reconcile.Request]
	p = apianswer.Patiently(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		p.Hasten(reconcile.Request{})
		return reconcile.Result{}, apierrors.NewTooManyRequests("busy", 3)
	}))
	if got, err := p.Reconcile(t.Context(), reconcile.Request{}); got.RequeueAfter != 3*time.Second || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
