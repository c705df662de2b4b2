package gather

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
)

const (
	// lookEvery is the time between two reads of an object that a command waits for. The command polls and doesn't watch,
	// because a user may have the right to get an object and not to watch it.
	lookEvery = 300 * time.Millisecond
	// outagePatience is how long reads may fail without an interruption: an API server takes about a minute to restart.
	outagePatience = 2 * time.Minute
)

// PollUntil calls done again and again until it returns true or an error, or ctx ends. What the command has asked for
// is stored already, so a transient error of a read doesn't end the wait, unless the reads fail for longer than
// outagePatience.
func PollUntil(ctx context.Context, done wait.ConditionWithContextFunc) error {
	answered := time.Now()
	return wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		is, err := done(ctx)
		if failure.IsTransient(err) && time.Since(answered) < outagePatience {
			return false, nil
		}
		answered = time.Now()
		return is, err
	})
}
