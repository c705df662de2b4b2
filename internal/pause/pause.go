// Package pause waits for a time, or until a context ends.
package pause

import (
	"context"
	"time"
)

// For waits for d. If ctx is done before, it returns the error of ctx.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
