package operator

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// outageRetryMax is the longest pause between two tries of a list or watch of a kind of ours while the API server can't be reached.
const outageRetryMax = 2 * time.Second

// askWhileAway asks again while the API server can't be reached, and returns its first answer. A reflector's own back-off may wait for a minute
// after the server is back, and what an LNamespace takes away must not wait for that.
func askWhileAway[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: outageRetryMax}
	for {
		answer, err := ask(ctx)
		if err == nil || isAnswer(err) || ctx.Err() != nil {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(pause.Step()):
		}
	}
}

// isAnswer reports whether an error is what the API server has answered.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}
