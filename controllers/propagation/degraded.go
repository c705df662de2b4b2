package propagation

import (
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/warren-tenancy/warren/internal/text"
)

// mostFailure is how many bytes of the API server's answer a note repeats.
const mostFailure = 256

// degradeLate makes a kind Degraded whenever it has been syncing for Timing.Degraded, until ctx is done. A kind that is
// Degraded holds nobody up: nothing is planned for it, and it becomes active as soon as it is listed whole.
func (k *kinds) degradeLate(ctx context.Context, run *kindRun) {
	tick := time.NewTicker(k.timing.Degraded / 30)
	defer tick.Stop()
	since := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if k.stateOf(run.kind.GroupKind()) != kindSyncing {
			since = time.Now()
			continue
		}
		if time.Since(since) >= k.timing.Degraded {
			k.degrade(run)
		}
	}
}

// degrade makes a kind Degraded that is still syncing, and says so once.
func (k *kinds) degrade(run *kindRun) {
	k.mu.Lock()
	late := run.state == kindSyncing
	if late {
		run.state = kindDegraded
		ctrl.Log.WithName("propagation").Info(run.describeDegraded(k.timing.Degraded))
	}
	k.mu.Unlock()
	if late {
		k.report()
	}
}

// noteFailure keeps why a kind can't be listed or watched.
func (k *kinds) noteFailure(run *kindRun, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	run.failure = err
}

// describeDegraded is a sentence for each kind that is Degraded, in alphabetical order.
func (k *kinds) describeDegraded() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, run := range k.runs {
		if run.state == kindDegraded {
			all = append(all, run.describeDegraded(k.timing.Degraded))
		}
	}
	slices.Sort(all)
	return all
}

// describeDegraded says what is wrong with the kind, and what to do. The caller holds the lock of its kinds.
func (r *kindRun) describeDegraded(after time.Duration) string {
	answer := "none"
	if r.failure != nil {
		answer = text.Cut(r.failure.Error(), mostFailure)
	}
	return fmt.Sprintf("kind %s of group %q is Degraded: the API server has not listed it for %s, so nothing of it is copied or removed until it does; "+
		"mend what serves it, such as the conversion webhook of its CRD, or take it off propagation.kinds; the last error: %s",
		r.kind.Kind, r.kind.Group, after, answer)
}
