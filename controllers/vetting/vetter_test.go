package vetting_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/controllers/vetting"
)

// A controller that waits for the first comparison continues after Patience, and stops when its context ends.
func TestNobodyWaitsForEver(t *testing.T) {
	wait := func(ctx context.Context, patience time.Duration) error {
		return (&vetting.Vetter{Timing: vetting.Timing{Patience: patience}}).WaitForSync(ctx)
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

// If a source does not sync, controller-runtime prints it with %v. String keeps that from reading fields that a look may be writing.
func TestNameInErrors(t *testing.T) {
	if got := fmt.Sprint(&vetting.Vetter{Role: "admin"}); got != "vetting of ClusterRole admin" {
		t.Error(got)
	}
}
