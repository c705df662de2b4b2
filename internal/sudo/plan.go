package sudo

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Act is one write.
type Act string

// The writes of a grant. Each is the only one of its pass.
const (
	Nothing       Act = ""
	WriteStatus   Act = "write the status"
	CreateTimer   Act = "create the timer"
	CreateRole    Act = "create the role"
	CreateBinding Act = "create the binding"
	DeleteBinding Act = "delete the binding"
	DeleteRole    Act = "delete the role"
	DeleteTimer   Act = "delete the timer"
	DeleteRequest Act = "delete the request"
)

// Step is the next write, and when to look again though nothing has changed.
type Step struct {
	Act    Act
	Status *v1alpha1.SudoRequestStatus // for WriteStatus
	Left   time.Duration               // for CreateTimer
	After  time.Duration               // 0: never
	Late   bool                        // the timer has not ended the right, so the operator does
}

const (
	// grace is how long after the end of a right the operator waits for the controller manager.
	grace = 5 * time.Second
	// timerStarts is how long a timer may take to run before TimerMissing says that it doesn't.
	timerStarts = 5 * time.Second
	// heldLook is the time between two looks at a right that finalizers of others hold.
	heldLook = 5 * time.Second
	// policyLook is the time between two looks at a policy that is not in force, or at a RoleBinding that is left over.
	policyLook = 5 * time.Second
	// refusedLook is the time between two tries of a write that the API server refuses.
	refusedLook = 5 * time.Second
)

// Next returns the next step for a request. Facts.Request is never nil.
func Next(f *Facts) Step {
	r := f.Request
	if f.Blind != "" {
		return reportBlind(f)
	}
	if IsFinished(r) {
		return finish(f)
	}
	if v, late := judgeRunning(f); !v.isNone() {
		return end(f, v, late)
	}
	if isInForce(f) {
		return reportGranted(f)
	}
	if f.Binding != nil { // it has no timer that the operator knows
		return end(f, verdict{v1alpha1.ReasonEnded, "its RoleBinding had no timer"}, false)
	}
	if v := judgeGrant(f); !v.isNone() {
		return hold(f, v)
	}
	return grant(f)
}

// NeedsPolicies reports whether Facts.Gap decides about the next step: at the start of a grant, and right before its RoleBinding. Until a
// request has its approvals, and between these steps, the policies are not read.
func NeedsPolicies(f *Facts) bool {
	if f.Blind != "" {
		return false
	}
	if v, _ := judgeRunning(f); !v.isNone() || f.Binding != nil || !judgeGrant(f).isNone() {
		return false
	}
	return f.Request.Status.StartTime == nil || f.Role != nil
}

// isRecorded reports whether the timer is the one whose UID the status has.
func isRecorded(f *Facts) bool { return f.Timer != nil && f.Request.Status.Timer == f.Timer.UID }

// isInForce reports whether the requester has the right now.
func isInForce(f *Facts) bool {
	return isRecorded(f) && f.Binding != nil && f.Binding.DeletionTimestamp == nil && f.Timer.DeletionTimestamp == nil
}

// wasGranted reports whether the status says that the request was in force.
func wasGranted(r *v1alpha1.SudoRequest) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, string(v1alpha1.ConditionActive))
}

// judgeRunning returns what ends a request, among it the end of its timer. late reports that the controller manager should have ended it.
func judgeRunning(f *Facts) (v verdict, late bool) {
	if v := judgeEnd(f); !v.isNone() {
		return v, false
	}
	r := f.Request
	over := verdict{v1alpha1.ReasonTimeOver, "its time is over. Make another request"}
	if r.Status.Timer == "" {
		return verdict{}, false
	}
	if !isRecorded(f) || f.Timer.DeletionTimestamp != nil {
		if isTimeOver(f) {
			return over, false
		}
		return verdict{v1alpha1.ReasonEnded, "its timer was deleted before its time"}, false
	}
	if at := findEnd(f); at != nil && !f.Now.Before(at.Add(grace)) {
		return over, f.Binding != nil
	}
	if wasGranted(r) && (f.Binding == nil || f.Binding.DeletionTimestamp != nil) {
		return verdict{v1alpha1.ReasonEnded, "its RoleBinding was deleted before its time"}, false
	}
	return verdict{}, false
}

// isTimeOver reports whether a request whose timer is gone has had its time. The controller manager counts whole seconds.
func isTimeOver(f *Facts) bool {
	const rounding = 2 * time.Second
	switch s := f.Request.Status; {
	case s.EndTime != nil:
		return !f.Now.Before(s.EndTime.Add(-rounding))
	case s.StartTime != nil:
		return !f.Now.Before(s.StartTime.Add(f.Request.Spec.Duration.Value() - rounding))
	}
	return false
}

// finish removes what a finished request has left, and the request after its time.
func finish(f *Facts) Step {
	if step := remove(f); step.Act != Nothing {
		return step
	}
	active := v1alpha1.FindCondition(f.Request.Status.Conditions, v1alpha1.ConditionActive)
	if f.Request.Status.ObservedGeneration != f.Request.Generation { // a decision came too late
		return writeStatus(f, verdict{v1alpha1.Reason(active.Reason), active.Message}, 0)
	}
	if left := active.LastTransitionTime.Add(f.Limits.HistoryFor).Sub(f.Now); left > 0 {
		return Step{After: left}
	}
	return Step{Act: DeleteRequest}
}

// remove takes the right away before its timer: whoever reads the objects in between must not find a right without a timer. RBAC grants
// what a RoleBinding says until it is gone, so a RoleBinding that a finalizer holds loses its Role.
func remove(f *Facts) Step {
	switch {
	case f.Binding != nil && f.Binding.DeletionTimestamp == nil:
		return Step{Act: DeleteBinding}
	case f.Binding != nil && f.Role != nil && f.Role.DeletionTimestamp == nil:
		return Step{Act: DeleteRole}
	case f.Timer != nil && f.Timer.DeletionTimestamp == nil:
		return Step{Act: DeleteTimer}
	}
	return Step{}
}

// end ends a request for ever: the right first, then the report.
func end(f *Facts, v verdict, late bool) Step {
	if step := remove(f); step.Act != Nothing {
		step.Late = late
		return step
	}
	if f.Binding != nil && f.Role != nil {
		return writeStatus(f, verdict{v1alpha1.ReasonNotEnded, describeHeld(f)}, heldLook)
	}
	return writeStatus(f, v, 0)
}

// describeHeld says who keeps a right that the operator has ended.
func describeHeld(f *Facts) string {
	return fmt.Sprintf("the right stays, because RoleBinding and Role %s/%s are deleted but have finalizers (%s; %s): "+
		"a cluster admin must remove these", v1alpha1.SudoNamespace, f.Binding.Name,
		describeFinalizers(f.Binding), describeFinalizers(f.Role))
}

// describeFinalizers names the finalizers of an object. They may be many and long, and a condition has a limit.
func describeFinalizers(object metav1.Object) string {
	return cutText(strings.Join(object.GetFinalizers(), ", "))
}

// hold reports why a request is not granted. What was begun for it is given up, so that its whole time counts from the next start.
func hold(f *Facts, v verdict) Step {
	begun := f.Request.Status.StartTime != nil
	if isFinal(v.reason) || !begun {
		if step := remove(f); step.Act != Nothing {
			return step
		}
	}
	if begun && !isFinal(v.reason) {
		return giveUp(f, v)
	}
	if v.reason == v1alpha1.ReasonPolicyMissing || v.reason == v1alpha1.ReasonGroupInUse {
		return writeStatus(f, v, policyLook)
	}
	return writeStatus(f, v, waitForExpiry(f))
}

// waitForExpiry returns when to look again at a request that waits for people.
func waitForExpiry(f *Facts) time.Duration {
	return max(f.Request.CreationTimestamp.Add(f.Limits.PendingFor).Sub(f.Now), time.Second)
}

// giveUp records that nothing was begun, before the timer is deleted. A timer that is not recorded is deleted as long as the request waits.
func giveUp(f *Facts, v verdict) Step {
	step := writeStatus(f, v, 0)
	step.Act, step.Status.StartTime, step.Status.Timer = WriteStatus, nil, ""
	return step
}

// grant gives the right, one write after the other: startTime, timer, its UID, and once it runs, Role and RoleBinding.
func grant(f *Facts) Step {
	status := f.Request.Status
	granting := verdict{v1alpha1.ReasonGranting, "the operator is granting the request"}
	if status.StartTime == nil {
		if f.Timer != nil {
			return remove(f) // of a start that was given up
		}
		step := writeStatus(f, granting, 0)
		at := metav1.NewTime(f.Now.Truncate(time.Second))
		step.Act, step.Status.StartTime = WriteStatus, &at
		return step
	}
	if f.Timer == nil {
		// startTime is in whole seconds, rounded down, so that a grant without a crash gets its whole time.
		left := (status.StartTime.Add(f.Request.Spec.Duration.Value()).Sub(f.Now) + time.Second - 1).Truncate(time.Second)
		if left < time.Second {
			return writeStatus(f, verdict{v1alpha1.ReasonTimeOver, "its time was over before it was granted. Make another request"}, 0)
		}
		return Step{Act: CreateTimer, Left: min(left, f.Request.Spec.Duration.Value())}
	}
	if status.Timer == "" {
		if !isTimerGenuine(f) {
			return replace(DeleteTimer, f.Timer)
		}
		step := writeStatus(f, granting, 0)
		step.Act, step.Status.Timer = WriteStatus, f.Timer.UID
		return step
	}
	ends := findEnd(f)
	switch {
	case ends == nil && f.Now.Sub(f.Timer.CreationTimestamp.Time) > timerStarts:
		return writeStatus(f, verdict{v1alpha1.ReasonTimerMissing,
			"the controller manager doesn't complete Job warren-sudo/" + f.Timer.Name + ", which would end the right"},
			waitForExpiry(f))
	case ends == nil:
		return Step{After: timerStarts}
	case !f.Now.Before(ends.Time):
		return Step{After: ends.Add(grace).Sub(f.Now)} // the timer ends it; see judgeRunning
	case f.Role == nil:
		return Step{Act: CreateRole}
	case !isRoleGenuine(f):
		return replace(DeleteRole, f.Role)
	}
	return Step{Act: CreateBinding}
}

// reportBlind says why nothing is granted while the operator can't see what it has made. What it reported of a right that may be in force,
// or that has ended, stays.
func reportBlind(f *Facts) Step {
	if IsFinished(f.Request) || wasGranted(f.Request) {
		return Step{After: refusedLook}
	}
	return writeStatus(f, verdict{v1alpha1.ReasonTimerMissing, fmt.Sprintf("the operator can't read what it makes in namespace %s: %s. "+
		"A cluster admin must apply component requests again", v1alpha1.SudoNamespace, f.Blind)}, refusedLook)
}

// Gives reports whether an act is one of those that give the right.
func (a Act) Gives() bool { return a == CreateTimer || a == CreateRole || a == CreateBinding }

// TakesAway reports whether an act is one of those that take the right away.
func (a Act) TakesAway() bool { return a == DeleteBinding || a == DeleteRole || a == DeleteTimer }

// ReportRefused returns the step that says why the API server refuses what would give the right, such as a policy of the cluster's or the
// namespace that is missing. Without a timer nothing is granted, so that is what is missing.
func ReportRefused(f *Facts, act Act, why string) Step {
	return writeStatus(f, verdict{v1alpha1.ReasonTimerMissing, fmt.Sprintf("the API server refuses to %s in namespace %s: %s",
		act, v1alpha1.SudoNamespace, why)}, refusedLook)
}

// replace deletes what somebody else has made under the name of an object of a grant. Finalizers may hold it for long.
func replace(act Act, object metav1.Object) Step {
	if object.GetDeletionTimestamp() != nil {
		return Step{After: timerStarts}
	}
	return Step{Act: act}
}

func reportGranted(f *Facts) Step {
	ends := findEnd(f)
	if ends == nil {
		return Step{After: timerStarts}
	}
	step := writeStatus(f, verdict{v1alpha1.ReasonGranted, "kubectl --as=" + v1alpha1.TemporarySudoer(f.Request.Namespace) +
		" or kubectl sudo, until " + ends.UTC().Format(time.RFC3339)}, max(ends.Add(grace).Sub(f.Now), time.Second))
	if step.Act == WriteStatus {
		step.Status.EndTime = ends
	}
	return step
}

// writeStatus returns the step that reports a verdict, or Nothing where the status says so already.
func writeStatus(f *Facts, v verdict, after time.Duration) Step {
	status, was := f.Request.Status.DeepCopy(), metav1.ConditionFalse
	if v.reason == v1alpha1.ReasonGranted || v.reason == v1alpha1.ReasonNotEnded {
		was = metav1.ConditionTrue
	}
	changed := meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: string(v1alpha1.ConditionActive), Status: was, Reason: string(v.reason), Message: v.message,
		ObservedGeneration: f.Request.Generation, LastTransitionTime: metav1.NewTime(f.Now.Truncate(time.Second)),
	})
	changed = changed || status.ObservedGeneration != f.Request.Generation
	status.ObservedGeneration = f.Request.Generation
	step := Step{Status: status, After: after}
	if changed {
		step.Act = WriteStatus
	}
	return step
}
