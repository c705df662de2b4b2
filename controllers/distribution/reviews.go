package distribution

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/warren-tenancy/warren/internal/distribute"
)

// reviews look at all targets of a distribution together: may copies be made, which may be updated now, what is to be
// written, and what is to be reported.
type reviews struct {
	*facts
	timing   Timing
	queue    *queue
	lookout  *lookout
	statuses *statuses
}

// review looks at all targets of one distribution.
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
	kind, ready := v.observe(d, &found)
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
			return // what a restart must know comes before the first write
		}
		r.noteReported()
	}
	v.queue.add(r.findWrites(j.found.Results)...)
	if !j.urgent {
		v.statuses.report(ctx, r, d, j.found, false)
	}
}

// observe says whether anything can be said of d: its kind is known, or known not to be.
func (v *reviews) observe(d *distribute.Distribution, found *distribute.Review) (k kind, ready bool) {
	if !v.runs.isSynced() || !v.index.Synced() {
		return k, false
	}
	if d.Problem != "" {
		return k, true
	}
	gk := d.Template.Kind.GroupKind()
	switch k = v.kinds.find(gk); k.state {
	case kindSyncing:
		return k, false
	case kindForbidden:
		found.Unobserved = "the operator may not list or watch " + k.Kind + "s: give its ClusterRole get, list and watch on them"
	case kindDegraded:
		found.Unobserved = fmt.Sprintf("the API server has not listed the copies of %s for %s, and nothing is distributed until it does: mend what serves the kind, "+
			"such as the conversion webhook of its CRD", gk, v.timing.Degraded)
	case kindPending:
		found.Unobserved = "the API server does not serve " + gk.String()
	}
	return k, true
}

// judge judges all targets of d, after a look for obstacles where one is due. ok is false where that has failed, or the distribution has
// changed: then its next review is queued.
func (v *reviews) judge(ctx context.Context, r *run, d *distribute.Distribution, resource schema.GroupVersionResource) (j judgement, ok bool) {
	snapshot := v.index.Snapshot()
	j, next := r.judge(v.facts, snapshot, d, false)
	if next == mustLook {
		if !v.look(ctx, r, d, resource) {
			return j, false
		}
		j, next = r.judge(v.facts, snapshot, d, true)
	}
	return j, next == judged
}

// look looks for obstacles. It returns false if that failed: then it is tried again.
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
