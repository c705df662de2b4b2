package requeue

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[string] {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	t.Cleanup(queue.ShutDown)
	return queue
}

func TestASourceRequeuesOnceItsControllerRuns(t *testing.T) {
	s, queue := &Source[string]{First: []string{"first"}}, newQueue(t)
	s.Add("early") // dropped: the controller begins with all objects
	s.AddAfter(time.Millisecond, "early")
	if err := s.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	s.Add("a", "b", "a")
	s.AddAfter(time.Millisecond, "late")
	for _, want := range []string{"first", "a", "b", "late"} {
		if got, _ := queue.Get(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if queue.Len() != 0 {
		t.Errorf("%d requests wait, want none", queue.Len())
	}
}

func TestALoopSaysWhenItLooksAgain(t *testing.T) {
	problem := errors.New("no connection")
	for name, c := range map[string]struct {
		again time.Duration
		err   error
	}{"it has looked": {time.Minute, nil}, "it could not look": {time.Minute, problem}} {
		t.Run(name, func(t *testing.T) {
			l := &Loop{Look: func(context.Context) (time.Duration, error) { return c.again, c.err }}
			result, err := l.Reconcile(t.Context(), reconcile.Request{})
			if !errors.Is(err, c.err) || err == nil && result.RequeueAfter != c.again {
				t.Errorf("got %v and %v, want another look in %s, or the error, for which the controller backs off", result, err, c.again)
			}
		})
	}
	(&Loop{}).Now() // before it runs, this does nothing
}
