package access

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/requeue"
)

// startPhase lasts from the start of a leader until each tenant that existed then has had one pass that only revokes.
// So a subject that left a list while no operator ran loses its rights before any subject gains a right, and before
// anything is copied.
type startPhase struct {
	over  chan struct{}                     // closed at the end
	again requeue.Source[reconcile.Request] // at the end, requeues the tenants that had their pass

	mu     sync.Mutex      // guards what follows
	left   map[string]bool // tenants without a pass; nil before the list of them is known
	passed map[string]bool // nil after the end
}

func newStartPhase(over chan struct{}) *startPhase {
	return &startPhase{over: over, passed: map[string]bool{}}
}

func (p *startPhase) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// setTenants sets the tenants whose passes the phase waits for.
func (p *startPhase) setTenants(tenants []v1alpha1.LNamespace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = map[string]bool{}
	for i := range tenants {
		// A worker may have been faster than this list.
		if name := tenants[i].Name; !p.passed[name] {
			p.left[name] = true
		}
	}
	p.endIfDone()
}

// recordPass records that a tenant has had its pass, also if that pass failed: an API server that refuses one write
// stops no other tenant.
func (p *startPhase) recordPass(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.passed == nil {
		p.again.Add(requestFor(tenant)) // its pass began before the end of the phase
		return
	}
	p.passed[tenant] = true
	delete(p.left, tenant)
	p.endIfDone()
}

// endIfDone ends the phase if no tenant is left. The caller holds the lock.
func (p *startPhase) endIfDone() {
	if p.left == nil || len(p.left) > 0 {
		return
	}
	close(p.over)
	for tenant := range p.passed {
		p.again.Add(requestFor(tenant))
	}
	p.passed = nil
}

// listTenants begins the phase with the tenants that the cache holds.
func (r *Reconciler) listTenants(ctx context.Context) error {
	all := &v1alpha1.LNamespaceList{}
	if err := r.Client.List(ctx, all); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing tenants failed: rights may be granted, and objects copied, before lost rights are revoked")
	}
	// Also after an error: without a list, the phase would never end, and nothing would be granted.
	r.start.setTenants(all.Items)
	return nil
}
