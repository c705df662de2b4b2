package operator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// FLT-F07: after an outage, the revocations of an LNamespace begin within seconds, and not after a reflector's pause of up to a minute.
func TestOurKindsAreAskedForSoonAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, last, longest := time.Now(), time.Now(), time.Duration(0)
		answer, err := askWhileAway(t.Context(), func(context.Context) (string, error) {
			longest, last = max(longest, time.Since(last)), time.Now()
			if time.Since(begin) < 5*time.Minute {
				return "", errors.New("connection refused")
			}
			return "a list", nil
		})
		if err != nil || answer != "a list" {
			t.Errorf("answer %q, error %v", answer, err)
		}
		if longest > 2*outageRetryMax {
			t.Errorf("it waited %s", longest)
		}
	})
}

func TestAnAnswerEndsTheWaiting(t *testing.T) {
	for name, answer := range map[string]error{"gone": apierrors.NewResourceExpired("too old"),
		"busy": apierrors.NewTooManyRequests("busy", 1)} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			_, err := askWhileAway(t.Context(), func(context.Context) (string, error) {
				asked++
				return "", answer
			})
			if !errors.Is(err, answer) || asked != 1 {
				t.Errorf("asked %d times, error %v", asked, err)
			}
		})
	}
}

func TestTheEndOfTheProcessEndsTheWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := askWhileAway(ctx, func(ctx context.Context) (string, error) { return "", ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A watch that is stopped while its filter has an event in hand leaves no goroutine: the bubble would end with a panic.
func TestStoppedWatchLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		source := watch.NewFake()
		shown := drainedWatch{watch.Filter(source, func(e watch.Event) (watch.Event, bool) { return e, true })}
		source.Modify(&corev1.Namespace{})
		synctest.Wait()
		shown.Stop()
	})
}
