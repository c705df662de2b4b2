package propagation

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/warren-tenancy/warren/internal/text"
)

// mostFailure is how many bytes of the API server's error a message repeats.
const mostFailure = 256

// degradeLate makes a kind Degraded whenever the kind has been syncing for Timing.Degraded, until ctx is done. Neither readiness nor rights
// wait for a kind that is Degraded. Nothing is planned for such a kind, and it becomes active as soon as it is listed whole.
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

// adviseScope returns the end of a sentence that advises scope Auto for a kind that is forbidden cluster-wide; "" for a kind of RBAC, which
// is always watched in the whole cluster.
func (r *kindRun) adviseScope() string {
	if r.kind.Group == rbacv1.GroupName {
		return ""
	}
	return ", or set scope of the kind in propagation.kinds to Auto, so that it is watched where that is allowed"
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
