package distribute

import (
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// report is the status of one ResourceDistribution, as it was read or written last.
type report struct {
	resourceVersion string
	status          v1alpha1.ResourceDistributionStatus
	writtenAt       time.Time
	failures        int       // writes that have failed in a row, up to the last one
	until           time.Time // when the next try after a failure is due
}

// takeStatus takes in the status of an object. It reports whether the status differs from the one reported last, which
// means that somebody else has written it.
func (r *report) takeStatus(resourceVersion string, status v1alpha1.ResourceDistributionStatus) (changed bool) {
	r.resourceVersion = resourceVersion
	if reflect.DeepEqual(r.status, status) {
		return false
	}
	r.status = status
	return true
}

// beginWrite records that a write of the status begins now.
func (r *report) beginWrite(now time.Time) { r.writtenAt = now }

// recordWritten records that the status was written.
func (r *report) recordWritten(w StatusWritten) {
	r.failures, r.until = 0, time.Time{}
	// A watch may have shown a newer version while the answer was under way.
	if r.resourceVersion == w.ResourceVersion {
		r.resourceVersion = w.NewVersion
	}
	r.status = w.Status
}

// recordFailure records that a write of the status has failed, and returns the time until the next try.
func (r *report) recordFailure(name string, now time.Time, timing Timing, err error) (wait time.Duration) {
	r.failures++
	wait = copies.TransientBackoff(timing.Last, timing.TransientMax, r.failures, copies.Slot{Name: name}, err)
	r.until = now.Add(wait)
	return wait
}

// lastStatus returns the status as it was reported last.
func (r *report) lastStatus() v1alpha1.ResourceDistributionStatus { return r.status }

// hasRefusal reports whether the status says that the API server refused to overwrite the obstacle in a namespace.
func (r *report) hasRefusal(namespace string) bool {
	return slices.ContainsFunc(r.status.ConflictingNamespaces, func(one v1alpha1.ConflictingNamespace) bool {
		return one.Name == namespace && (one.Reason == v1alpha1.ReasonImmutable || one.Reason == v1alpha1.ReasonTypeDiffers)
	})
}

// hasFailure reports whether the status says that the write of the copy in a namespace failed.
func (r *report) hasFailure(namespace string) bool {
	return slices.ContainsFunc(r.status.FailedNamespaces, func(one v1alpha1.FailedNamespace) bool { return one.Name == namespace })
}

// reports has statuses written.
type reports struct {
	*core
	events *events
}

// requestWrite requests a write of the status if the status has changed: at once if urgent is true, otherwise not more
// often than Timing allows, and never before the back-off of a failed write is over. It reports whether a write is
// requested or waits for that back-off.
func (rs *reports) requestWrite(r *run, found Review, urgent bool) (pending bool) {
	was := r.report.status
	now := asReturned(r.Status(found, &was))
	if reflect.DeepEqual(was, now) {
		rs.events.announceDone(r.Distribution, r.done)
		return false
	}
	if wait := r.report.until.Sub(rs.now); wait > 0 {
		rs.queueAfter(reviewKey(r.Name), wait)
		return true
	}
	pace := rs.options.Timing.Last
	if ready := v1alpha1.FindCondition(now.Conditions, v1alpha1.ConditionReady); ready.Reason == string(v1alpha1.ReasonProgressing) {
		pace = rs.options.Timing.Pace
	}
	if wait := r.report.writtenAt.Add(pace).Sub(rs.now); !urgent && wait > 0 {
		rs.queueAfter(reviewKey(r.Name), wait)
		return false
	}
	r.report.beginWrite(rs.now)
	rs.emitOutput(WriteStatus{
		Name: r.Name, UID: r.UID, ResourceVersion: r.report.resourceVersion, Status: now,
		run: r, of: r.Distribution, was: was, urgent: urgent, results: found.Results,
	})
	return true
}

// takeAnswer takes in the answer to the write of r's status. It reports whether the status was written.
func (rs *reports) takeAnswer(r *run, w StatusWritten) bool {
	if w.Err != nil {
		if !apierrors.IsNotFound(w.Err) && !apierrors.IsConflict(w.Err) {
			rs.emitOutput(copies.Log{Message: "writing the status of ResourceDistribution " + w.Name + "; it is tried again", Err: w.Err})
		}
		rs.queueAfter(reviewKey(r.Name), r.report.recordFailure(r.Name, rs.now, rs.options.Timing, w.Err))
		return false
	}
	r.report.recordWritten(w)
	rs.events.announceDone(w.of, r.done)
	if rs.events.announceChange(w.of, &w.was, &w.Status) {
		rs.emitOutput(RolloutEnded{r.began})
	}
	rs.events.announceObstacles(w.of, &w.was, w.results)
	return true
}
