package distribute

import (
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// reviews plan all targets of a ResourceDistribution together. They decide whether copies may be created, which writes
// to queue, and what the status reports.
type reviews struct {
	*core
	left     *leftCopies
	kinds    *kinds
	outcomes *outcomes
	plans    *plans
	reports  *reports
	runs     *runs
}

// startReview reviews a distribution. For a deleted one it queues the copies that must still be handed back or
// unlocked.
func (rs *reviews) startReview(name string) {
	r := rs.runs.at(name)
	switch {
	case !rs.listed:
	case r == nil:
		rs.left.queueAll(name)
	case !r.Deleting:
		rs.beginReview(name)
		rs.reviewRun(r, false)
	}
}

// reviewRun reviews a distribution. looked is true if the obstacles were listed for this review.
func (rs *reviews) reviewRun(r *run, looked bool) {
	if r.Problem != v1alpha1.ReasonInvalidResource {
		r.gate.recordNames(r.Distribution, rs.forest) // also while nothing can be written: the record dates spec.targets
	}
	found := Review{}
	r.gate.addToReview(&found)
	if r.Problem != "" {
		rs.reports.requestWrite(r, found, false)
		return
	}
	k := rs.kinds.findKind(r.Template.Kind.GroupKind())
	if k.state == copies.KindSyncing {
		return // the change of this state queues the review
	}
	if found.Unobserved = rs.kinds.describeUnobserved(k); found.Unobserved != "" {
		rs.reports.requestWrite(r, found, false)
		return
	}
	results := rs.plans.planAll(r)
	if !looked && rs.mustLook(r, results) {
		rs.emitOutput(ListObstacles{r.obstacles.watchOf(r.Distribution), r.Distribution})
		return
	}
	found = rs.decideWrites(r, results)
	found.Resource = k.resource.GroupResource().String()
	if !r.gate.isOpen(r.Distribution) {
		if rs.reports.requestWrite(r, found, true) {
			return // the status must be written before the first copy
		}
		r.gate.endReport()
		rs.queueWrites(r, found.Results)
		return
	}
	rs.queueWrites(r, found.Results)
	if !rs.isExamining(r, found.Results) {
		rs.reports.requestWrite(r, found, false)
	}
}

// isExamining reports whether it is still to be found out, for the first time since this process started or the spec
// changed, why a copy can't be written: by reading the obstacle, or by the write that the API server refused before. The
// status is not written before that.
func (rs *reviews) isExamining(r *run, results []Result) bool {
	// Otherwise each start would remove for a moment what the status reports about the obstacle (DIST-D112) or the failure (DIST-D131).
	return r.Distributes() && slices.ContainsFunc(results, func(one Result) bool {
		examines := one.Verb == Examine || one.Verb == Overwrite && r.report.hasRefusal(one.Namespace) ||
			one.Verb != Nothing && r.report.hasFailure(one.Namespace)
		return examines && r.troubles.isUntried(one.Namespace) && !rs.waits(r, one)
	})
}

// mustLook reports whether obstacles must be listed before this review: they must be known before the first copies are
// created, and while suspended.
func (rs *reviews) mustLook(r *run, results []Result) bool {
	missing := slices.ContainsFunc(results, func(one Result) bool { return one.State == Missing })
	return r.obstacles.mustLook(missing, r.Suspend || !r.gate.isPassed(r.Distribution))
}

// endLook takes in a list of obstacles, and reviews their distribution.
func (rs *reviews) endLook(f ObstaclesFound) {
	r := rs.runs.at(f.Distribution)
	if r == nil || r.Distribution != f.of {
		return // the next review is queued
	}
	r.obstacles.endLook(f.Err)
	if f.Err != nil {
		rs.emitOutput(copies.Log{Message: "looking for conflicts of ResourceDistribution " + r.Name + "; it is tried again", Err: f.Err})
		rs.queueAfter(reviewKey(r.Name), rs.options.Timing.Pace)
		return
	}
	if !r.obstacles.isShown() { // what a watch shows is never older than what it has shown; an answer may be
		rs.queueKeys(r.obstacles.takeList(r.Distribution, f.Kind, f.Objects)...)
	}
	rs.reviewRun(r, true)
}

// queueWrites queues each target for which a review plans a write. It omits targets that are queued already or must
// wait for a retry.
func (rs *reviews) queueWrites(r *run, results []Result) {
	if !r.Distributes() {
		return
	}
	var keys []Key
	for _, one := range results {
		key := Key{r.Name, one.Namespace}
		if one.Verb != Nothing && !rs.isQueued(key) && !rs.waits(r, one) {
			keys = append(keys, key)
		}
	}
	rs.queueKeys(keys...)
}

// waits reports whether a planned write must wait: for a retry, or because somebody changes the copy in a loop.
func (rs *reviews) waits(r *run, one Result) bool {
	return r.troubles.untilNext(one.Namespace, rs.now) > 0 || rs.outcomes.loopWait(r, one.Namespace, one.Action, one.copy) > 0
}

// decideWrites decides what may be written now, and returns the review that the status reports. results is what planAll
// returned.
func (rs *reviews) decideWrites(r *run, results []Result) Review {
	// The gate comes first: what is planned again after it may be created.
	r.gate.decideCreation(r.Distribution, results)
	found := Review{Checked: true, Results: rs.plans.planAll(r)}
	r.obstacles.followKind(r.Distribution, slices.ContainsFunc(found.Results, func(one Result) bool {
		return one.State == InConflict && one.copy == nil
	}))
	found.NotFound, found.Replaced = r.Targets.NotFound(rs.forest), r.gate.findReplaced(rs.forest)
	r.gate.addToReview(&found)
	found.Unwatched = r.obstacles.describeUnwatched()
	return found
}

// endReport takes in the answer to the write of a status. If it had to be written before the first copy, the targets
// are queued now.
func (rs *reviews) endReport(w StatusWritten) {
	r := rs.runs.at(w.Name)
	// The status was written for an object that has been deleted or replaced since.
	if r == nil || r != w.run {
		return
	}
	if rs.reports.takeAnswer(r, w) && w.urgent && r.gate.isDecided(r.Distribution) && r.Distribution == w.of {
		r.gate.endReport()
		rs.queueWrites(r, w.results)
	}
}
