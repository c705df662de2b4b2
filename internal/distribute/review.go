package distribute

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

func (k Started) applyTo(s *State) {
	if k.Namespace == "" {
		s.startReview(k.Distribution)
		return
	}
	s.startWrite(k.Key)
}

// startReview plans all targets of a distribution together. It decides whether copies may be created, which may be updated now, which
// writes to queue, and what the status reports. For a deleted distribution it queues the copies that must still be handed back or
// unlocked.
func (s *State) startReview(name string) {
	r := s.runs[name]
	switch {
	case !s.listed:
	case r == nil:
		s.queue(s.copies.findFarewells(name)...)
	case !r.Deleting:
		r.dueAt = time.Time{}
		s.reviewRun(r, false)
	}
}

// reviewSoon queues a review of a distribution. It queues the review at once if no target of the distribution is queued. Otherwise it
// queues the review after Timing.Pace, unless a review is due already.
func (s *State) reviewSoon(r *run) {
	switch isLate := r.dueAt.IsZero() || s.now.After(r.dueAt); {
	case len(r.open) == 0:
		s.queue(reviewKey(r.Name))
	case isLate:
		r.dueAt = s.now.Add(s.options.Timing.Pace)
		s.queueAfter(reviewKey(r.Name), s.options.Timing.Pace)
	}
}

// reviewRun reviews a distribution. looked is true if the obstacles were listed for this review.
func (s *State) reviewRun(r *run, looked bool) {
	if r.Problem != v1alpha1.ReasonInvalidResource {
		s.recordNames(r) // also while nothing can be written: the record dates spec.targets
	}
	found := Review{Admitted: r.admitted, Named: r.named}
	if r.Problem != "" {
		s.reportStatus(r, found, false)
		return
	}
	k := s.kinds[r.Template.Kind.GroupKind()]
	if k.state == copies.KindSyncing {
		return // the change of this state queues the review
	}
	if found.Unobserved = s.describeUnobserved(k); found.Unobserved != "" {
		s.reportStatus(r, found, false)
		return
	}
	results := s.planAll(r)
	if !looked && (r.isLookDue(s.now) || r.mustLook(results)) {
		s.emitOutput(ListObstacles{s.obstacleWatchOf(r), r.Distribution})
		return
	}
	found = s.decideWrites(r, results)
	found.Resource = k.resource.GroupResource().String()
	if r.unreported {
		if s.reportStatus(r, found, true) {
			return // the status must be written before the first copy
		}
		r.unreported = false
		s.queueWrites(r, found.Results)
		return
	}
	s.queueWrites(r, found.Results)
	if !r.isExamining(found.Results) {
		s.reportStatus(r, found, false)
	}
}

// isExamining reports whether it is still to be found out, for the first time since this process started or the spec changed, why an
// obstacle can't be taken over: by reading it, or by the overwriting that the API server refused before. The status is not written before
// that, because otherwise each start would remove for a moment what the status reports about the obstacle.
func (r *run) isExamining(results []Result) bool {
	return r.Distributes() && slices.ContainsFunc(results, func(one Result) bool {
		examines := one.Verb == Examine || one.Verb == Overwrite && r.reportsRefusal(one.Namespace)
		return examines && r.troubles[one.Namespace].tries == 0
	})
}

// reportsRefusal reports whether the status says that the API server refused to overwrite the obstacle in a namespace.
func (r *run) reportsRefusal(namespace string) bool {
	return slices.ContainsFunc(r.reported.ConflictingNamespaces, func(one v1alpha1.ConflictingNamespace) bool {
		return one.Name == namespace && (one.Reason == v1alpha1.ReasonImmutable || one.Reason == v1alpha1.ReasonTypeDiffers)
	})
}

// describeUnobserved returns why the copies of a kind cannot be seen; "" if they can.
func (s *State) describeUnobserved(k *watchedKind) string {
	gk := k.GroupKind()
	switch k.state {
	case copies.KindForbidden:
		return "the operator may not list or watch " + k.Kind + "s: give its ClusterRole get, list and watch on them"
	case copies.KindDegraded:
		if errors.Is(k.failure, watchset.ErrLimit) {
			return fmt.Sprintf("the operator does not watch the copies of %s, and nothing is distributed until it does: informers.maxInformers of "+
				"the configuration is reached; raise it", gk)
		}
		return fmt.Sprintf("the API server has not listed the copies of %s for %s, and nothing is distributed until it does: repair what serves "+
			"the kind, "+
			"such as the conversion webhook of its CRD", gk, s.options.DegradedAfter)
	case copies.KindPending:
		return "the API server does not serve " + gk.String()
	}
	return ""
}

func (f ObstaclesFound) applyTo(s *State) {
	r := s.runs[f.Distribution]
	switch {
	case r == nil || r.Distribution != f.of: // the next review is queued
	case f.Err != nil:
		if r.isLookDue(s.now) { // a list that fails delays no more than one review of what is known
			r.lookAt = s.now.Add(s.options.RetryMax)
		}
		s.emitOutput(copies.Log{Message: "looking for conflicts of ResourceDistribution " + r.Name + "; it is tried again", Err: f.Err})
		s.queueAfter(reviewKey(r.Name), s.options.Timing.Pace)
	default:
		r.looked = true
		s.queue(r.replaceObstacles(s.readObstacles(f.Kind, f.Objects))...)
		s.reviewRun(r, true)
	}
}

// queueWrites queues each target for which a review plans a write. It omits targets that are queued already or must wait for a retry.
func (s *State) queueWrites(r *run, results []Result) {
	if !r.Distributes() {
		return
	}
	var keys []Key
	for _, one := range results {
		waits := s.now.Before(r.troubles[one.Namespace].until) || s.loopWait(r, one.Namespace, one.Action, one.copy) > 0
		if one.Verb != Nothing && !r.open[one.Namespace] && !waits {
			keys = append(keys, Key{r.Name, one.Namespace})
		}
	}
	s.queue(keys...)
}

// recordNames records which namespaces the names in the spec mean. The status must hold this record before the operator writes in any
// of these namespaces.
func (s *State) recordNames(r *run) {
	if named, changed := r.RecordNames(s.forest, r.named); changed {
		r.named, r.unreported = named, true
	}
}

// planAll returns the plans of all targets, and of the copies in other namespaces that need a write, sorted by namespace.
func (s *State) planAll(r *run) []Result {
	var all []Result
	for namespace := range s.forest.All() {
		plan := s.planAt(r, namespace)
		if plan.choice != Chosen && plan.copy == nil || plan.State == None && plan.Verb == Nothing {
			continue
		}
		one := Result{Namespace: namespace, Action: plan.Action, copy: plan.copy}
		one.Unmarked = plan.choice == Chosen && r.Unmarked(plan.copy)
		if one.Verb != Nothing {
			one.Failure = r.troubles[namespace].failure
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Result) int { return strings.Compare(a.Namespace, b.Namespace) })
	return all
}

// mustLook reports whether obstacles must be listed now: before the first copies are created, and after a start or while suspended if
// copies are missing. They are not listed for a target that is added later, because the answer to the POST of its copy shows an obstacle.
func (r *run) mustLook(results []Result) bool {
	if r.watch != nil && r.watching {
		return false
	}
	missing := slices.ContainsFunc(results, func(one Result) bool { return one.State == Missing })
	return missing && (!r.looked || r.Suspend || r.AllOrNothing() && r.admitted != r.Check)
}

// decideWrites decides what may be written now, and returns the review that the status reports. results is what planAll returned.
func (s *State) decideWrites(r *run, results []Result) Review {
	found := Review{Checked: true}
	isNew := r.admitCopies(results)
	r.judged, r.unreported = r.Distribution, r.unreported || isNew
	found.Results = s.planAll(r)
	s.followObstacles(r, found.Results)
	found.NotFound, found.Replaced = r.Targets.NotFound(s.forest), r.named.Replaced(s.forest)
	found.Admitted, found.Named = r.admitted, r.named
	if r.unwatched.Err != nil {
		found.Unwatched = fmt.Sprintf("the operator lists these objects every %s instead of watching them: %s", s.options.RetryMax,
			copies.DescribeStatus(r.unwatched))
	}
	return found
}

// admitCopies lets copies be created if the check for conflicts passes. It reports whether the status must record that before the
// first write, because objects will be created or adopted.
func (r *run) admitCopies(results []Result) (isNew bool) {
	r.mayCreate = true
	if !r.AllOrNothing() || r.admitted == r.Check {
		return false
	}
	for _, one := range results {
		if blocks, unknown := r.Blocks(one.Action, r.isOwn(one.copy)); blocks || unknown {
			r.mayCreate = false
		}
	}
	if !r.mayCreate || r.Suspend {
		return false
	}
	r.admitted = r.Check
	return slices.ContainsFunc(results, func(one Result) bool { return one.State == Missing || one.State == InConflict })
}

// followObstacles watches the obstacles of a distribution while there are any. While the watch does not run, they are listed now and then.
func (s *State) followObstacles(r *run, results []Result) {
	if slices.ContainsFunc(results, func(one Result) bool { return one.State == InConflict && one.copy == nil }) {
		s.keepWatch(r)
		s.queueLook(r)
		return
	}
	s.stopWatch(r)
	r.obstacles = map[string]*Obstacle{}
}

// reportStatus requests a write of the status if the status has changed: at once if urgent is true, otherwise not more often than Timing
// allows, and never before the back-off of a failed write is over. It reports whether a write is requested or waits for that back-off.
func (s *State) reportStatus(r *run, found Review, urgent bool) (pending bool) {
	was := r.reported
	now := asReturned(r.Status(found, &was))
	if reflect.DeepEqual(was, now) {
		s.announceDeeds(r, r.Distribution)
		return false
	}
	if wait := r.failedStatus.until.Sub(s.now); wait > 0 {
		s.queueAfter(reviewKey(r.Name), wait)
		return true
	}
	pace := s.options.Timing.Last
	if ready := v1alpha1.FindCondition(now.Conditions, v1alpha1.ConditionReady); ready.Reason == string(v1alpha1.ReasonProgressing) {
		pace = s.options.Timing.Pace
	}
	if wait := r.reportedAt.Add(pace).Sub(s.now); !urgent && wait > 0 {
		s.queueAfter(reviewKey(r.Name), wait)
		return false
	}
	r.reportedAt = s.now
	s.emitOutput(WriteStatus{
		Name: r.Name, UID: r.UID, ResourceVersion: r.resourceVersion, Status: now,
		run: r, of: r.Distribution, was: was, urgent: urgent, results: found.Results,
	})
	return true
}

func (w StatusWritten) applyTo(s *State) {
	r := s.runs[w.Name]
	if r == nil || r != w.run {
		return
	}
	if w.Err != nil {
		if !apierrors.IsNotFound(w.Err) && !apierrors.IsConflict(w.Err) {
			s.emitOutput(copies.Log{Message: "writing the status of ResourceDistribution " + w.Name + "; it is tried again", Err: w.Err})
		}
		s.putOffStatus(r, w.Err)
		return
	}
	r.failedStatus = failedStatus{}
	if r.resourceVersion == w.ResourceVersion {
		r.resourceVersion = w.NewVersion
	}
	r.reported = w.Status
	s.announceDeeds(r, w.of)
	if s.announceChange(w.of, &w.was, &w.Status) {
		s.emitOutput(RolloutEnded{r.began})
	}
	s.announceObstacles(w.of, &w.was, w.results)
	if w.urgent && r.judged == r.Distribution && r.Distribution == w.of {
		r.unreported = false
		s.queueWrites(r, w.results)
	}
}

// putOffStatus queues the next try of a write of a status that has failed.
func (s *State) putOffStatus(r *run, err error) {
	timing, failed := s.options.Timing, &r.failedStatus
	failed.tries++
	wait := copies.TransientBackoff(timing.Last, timing.TransientMax, failed.tries, copies.Slot{Name: r.Name}, err)
	failed.until = s.now.Add(wait)
	s.queueAfter(reviewKey(r.Name), wait)
}
