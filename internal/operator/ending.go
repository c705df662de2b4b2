package operator

import (
	"context"
	"errors"
	"time"
)

// endPatience is how long the operator may take to end. It is shorter than the grace period of its pod, 20 s, so that
// the process itself can report why it ends.
const endPatience = 15 * time.Second

var errNoEnd = errors.New("the operator was told to end, and a part of it did not end within 15 s: the process ends " +
	"without it, and the next one repeats what it left undone")

// startUntilEnd calls start, and returns at the latest endPatience after ctx is done. A manager of controller-runtime that
// is stopped before its caches have synced never returns (controller-runtime#3440).
func startUntilEnd(ctx context.Context, start func(context.Context) error) error {
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(endPatience)
	defer patience.Stop()
	select {
	case err := <-ended:
		return err
	case <-patience.C:
		return errNoEnd
	}
}
