package operator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// stuckManager doesn't return when its context is done, as a manager whose caches have not synced.
type stuckManager struct {
	ctrl.Manager
	release chan struct{}
}

func (m stuckManager) Start(context.Context) error {
	<-m.release
	return nil
}

func TestEnd(t *testing.T) {
	t.Run("FLT-F53 the operator ends within 15 s of SIGTERM even if its caches have never synced", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stuck := stuckManager{release: make(chan struct{})}
			defer close(stuck.release)
			m := withProbes(stuck, "0")
			m.beforeStart = func(context.Context) {}
			ctx, stop := context.WithCancel(t.Context())
			begun := time.Now()
			time.AfterFunc(time.Second, stop)
			if err := m.Start(ctx); !errors.Is(err, errNoEnd) || time.Since(begun) != time.Second+endPatience {
				t.Errorf("ended after %s: %v", time.Since(begun), err)
			}
		})
	})
	t.Run("a manager that ends, ends at once", func(t *testing.T) {
		failed := errors.New("failed")
		if err := startUntilEnd(t.Context(), func(context.Context) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
	})
}
