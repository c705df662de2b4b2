package vetting_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/warren-tenancy/warren/controllers/vetting"
)

// Who waits for the first look waits no longer than it is worth, and ends when told to.
func TestNobodyWaitsForEver(t *testing.T) {
	wait := func(ctx context.Context, patience time.Duration) error {
		v := &vetting.Vetter{Timing: vetting.Timing{Patience: patience}}
		return v.Changes().(source.SyncingSource).WaitForSync(ctx)
	}
	if err := wait(t.Context(), time.Millisecond); err != nil {
		t.Errorf("out of patience: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := wait(ended, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("told to end: %v", err)
	}
}
