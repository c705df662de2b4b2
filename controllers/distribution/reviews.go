package distribution

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// reviews plans all targets of a distribution together: whether copies may be created, which may be updated now, which writes to
// queue, and what the status says.
type reviews struct {
	*facts
	timing   Timing
	queue    *queue
	lookout  *lookout
	statuses *statuses
}

// review reviews one distribution. For a deleted one, it queues the copies that are left.
func (v *reviews) review(ctx context.Context, name string) {
	r := v.runs.find(name)
	if r == nil {
		if v.runs.isSynced() {
			v.queue.add(v.copies.findFarewells(name)...)
		}
		return
	}
	d, admitted, ok := r.beginReview()
	if !ok {
		return
	}
	found := distribute.Review{Admitted: admitted}
	kind, ready := v.findKind(d, &found)
	if !ready {
		return
	}
	if d.Problem != "" || found.Unobserved != "" {
		v.statuses.report(ctx, r, d, found, false)
		return
	}
	j, ok := v.judge(ctx, r, d, kind.resource)
	if !ok {
		return
	}
	if j.wait > 0 {
		v.queue.AddAfter(key{distribution: name}, j.wait)
	}
	if j.watch != nil {
		v.lookout.begin(r, d, kind.resource, j.watch)
	}
	if j.urgent {
		if !v.statuses.report(ctx, r, d, j.found, true) {
			return // the status must be written before the first copy
		}
		r.noteReported()
	}
	v.queue.add(r.findWrites(j.found.Results)...)
	if !j.urgent {
		v.statuses.report(ctx, r, d, j.found, false)
	}
}

// findKind returns the kind of d's copies, and whether a review is possible: everything was listed, or found.Unobserved says why the
// copies can't be.
func (v *reviews) findKind(d *distribute.Distribution, found *distribute.Review) (k kind, ready bool) {
	if !v.runs.isSynced() || !v.view.Synced() {
		return k, false
	}
	if d.Problem != "" {
		return k, true
	}
	gk := d.Template.Kind.GroupKind()
	switch k = v.kinds.find(gk); k.state {
	case copies.KindSyncing:
		return k, false
	case copies.KindForbidden:
		found.Unobserved = "the operator may not list or watch " + k.Kind + "s: give its ClusterRole get, list and watch on them"
	case copies.KindDegraded:
		found.Unobserved = fmt.Sprintf("the API server has not listed the copies of %s for %s, and nothing is distributed until it does: mend what serves the kind, "+
			"such as the conversion webhook of its CRD", gk, v.settings.DegradedAfter)
	case copies.KindPending:
		found.Unobserved = "the API server does not serve " + gk.String()
	}
	return k, true
}

// judge judges all targets of d, after a list of obstacles where one is due. ok is false if that list has failed or the
// distribution has changed; its next review is queued then.
func (v *reviews) judge(ctx context.Context, r *run, d *distribute.Distribution, resource schema.GroupVersionResource) (j judgement, ok bool) {
	snapshot := v.view.Snapshot()
	j, next := r.judge(v.facts, snapshot, d, false)
	if next == mustLook {
		if !v.look(ctx, r, d, resource) {
			return j, false
		}
		j, next = r.judge(v.facts, snapshot, d, true)
	}
	j.found.Resource = resource.GroupResource().String()
	return j, next == judged
}

// look lists obstacles. If that fails, it queues another review and returns false.
func (v *reviews) look(ctx context.Context, r *run, d *distribute.Distribution, resource schema.GroupVersionResource) bool {
	found, err := v.lookout.list(ctx, d, resource)
	if err != nil {
		ctrl.Log.WithName("distribution").Error(err, "looking for conflicts; it is tried again", "distribution", r.name)
		v.queue.AddAfter(key{distribution: r.name}, v.timing.Pace)
		return false
	}
	r.noteLook(found)
	return true
}
