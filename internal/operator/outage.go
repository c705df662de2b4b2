package operator

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/warren-tenancy/warren/internal/pause"
)

// outageRetryMax is the longest pause between two tries of a list or watch while the API server can't be reached.
const outageRetryMax = 2 * time.Second

// askOften returns lw with lists and watches that ask again while the API server can't be reached.
func askOften(lw toolscache.ListerWatcher) *toolscache.ListWatch {
	inner := toolscache.ToListerWatcherWithContext(lw)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return askWhileAway(ctx, func(ctx context.Context) (runtime.Object, error) { return inner.ListWithContext(ctx, options) })
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := askWhileAway(ctx, func(ctx context.Context) (watch.Interface, error) { return inner.WatchWithContext(ctx, options) })
			if err != nil {
				return nil, err
			}
			return drainedWatch{w}, nil
		},
	}
}

// drainedWatch is a watch whose events are received after Stop, too. controller-runtime shows watches through watch.Filter, whose goroutine
// would otherwise wait for ever to hand over the event that it had in hand.
type drainedWatch struct{ watch.Interface }

// Stop implements watch.Interface.
func (w drainedWatch) Stop() {
	w.Interface.Stop()
	go func() {
		for range w.ResultChan() {
		}
	}()
}

// askWhileAway asks again while the API server can't be reached, and returns its first answer. A reflector's own back-off may wait for a
// minute after the server is back, and rights that an LNamespace revokes must not last that long.
func askWhileAway[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: outageRetryMax}
	for {
		answer, err := ask(ctx)
		if err == nil || isAnswer(err) || ctx.Err() != nil {
			return answer, err
		}
		if pause.For(ctx, backoff.Step()) != nil {
			return answer, err
		}
	}
}

// isAnswer reports whether an error is an answer of the API server.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}
