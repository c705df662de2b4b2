package vetting

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Changes returns a source that requeues every tenant when the answer of Unvetted has changed. A controller that uses it waits for
// the first look, so that after a restart it doesn't report for a moment that nothing is dangerous. It waits Patience at most,
// because vetting must not stop tenants.
func (v *Vetter) Changes() source.Source { return &changes{vetter: v} }

type changes struct{ vetter *Vetter }

// Start implements source.Source.
func (c *changes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	c.vetter.subscribe(func(tenants []string) {
		for _, tenant := range tenants {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: tenant}})
		}
	})
	return nil
}

// WaitForSync implements source.SyncingSource.
func (c *changes) WaitForSync(ctx context.Context) error {
	c.vetter.prepareVetter()
	select {
	case <-c.vetter.first:
	case <-time.After(c.vetter.Timing.Patience):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
