package distribute

import (
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
)

// trouble explains why the last write of a target failed, and when the next one may be tried.
type trouble struct {
	failure *Failure // nil for an error that may pass without a change, such as a 503
	tries   int
	until   time.Time // nothing is tried before
}

// startWrite plans one target, and asks for at most one write.
func (s *State) startWrite(k Key) {
	r := s.runs[k.Distribution]
	if r == nil {
		s.startFarewell(k)
		return
	}
	if w, ok := s.planWrite(r, k.Namespace); ok && !s.waitsInLoop(w) {
		s.emitOutput(w)
		return
	}
	s.reviewSoon(r)
}

// planWrite takes a target off the queue and plans it; ok is false where nothing is to be written now.
func (s *State) planWrite(r *run, namespace string) (w WriteCopy, ok bool) {
	if delete(r.open, namespace); len(r.open) == 0 {
		r.open = map[string]bool{} // a map that has been large keeps its memory
	}
	if !r.Distributes() || !s.listed {
		return w, false
	}
	k := s.kinds[r.Template.Kind.GroupKind()]
	if k.state != copies.KindActive {
		return w, false
	}
	if r.judged != r.Distribution || r.unreported {
		return w, false // the review comes first, and queues this target again
	}
	plan := s.planAt(r, namespace)
	if plan.Verb == Nothing {
		delete(r.troubles, namespace)
		return w, false
	}
	if s.now.Before(r.troubles[namespace].until) {
		return w, false // the target is queued for that time already
	}
	return WriteCopy{
		Slot: r.Template.Slot(namespace), Resource: k.resource, Action: plan.Action, Copy: plan.copy,
		Distribution: r.Distribution, Confirm: plan.Verb == Create && r.vanished[namespace], by: r.Name, run: r,
	}, true
}

// waitsInLoop reports whether a restoring write must wait because somebody changes the copy in a loop. The target is queued for later then.
func (s *State) waitsInLoop(w WriteCopy) bool {
	wait := s.loopWait(w.run, w.Slot.Namespace, w.Action, w.Copy)
	if wait > 0 {
		s.queueAfter(w.key(), wait)
	}
	return wait > 0
}

// loopWait returns how long an action must wait: 0 unless it restores a copy that somebody changes in a loop.
func (s *State) loopWait(r *run, namespace string, a Action, c *Copy) time.Duration {
	if !r.isRepair(a, c) {
		return 0
	}
	return s.repairs.Wait(r.Template.Slot(namespace), s.now, s.options.Timing.LoopWindow)
}

// startFarewell hands back or unlocks the next copy that a deleted distribution has left in one namespace.
func (s *State) startFarewell(k Key) {
	if !s.listed || s.runs[k.Distribution] != nil {
		return // once all are known, a distribution that is not found is deleted
	}
	for slot, one := range s.copies.In(k.Namespace) {
		kind, verb := s.kinds[slot.Kind], Farewell(one)
		if one.By == k.Distribution && verb != Nothing && kind.state == copies.KindActive {
			s.emitOutput(WriteCopy{Slot: slot, Resource: kind.resource, Action: Action{Verb: verb}, Copy: one, by: k.Distribution})
			return
		}
	}
}

func (c CopyWritten) applyTo(s *State) {
	s.takeAnswer(c)
	r := s.runs[c.by]
	switch {
	case r != c.run: // the distribution is another one now, or deleted: what was written for the old one is planned anew
		s.queue(c.key())
	case c.Err != nil && c.isOutdated(): // the present spec may succeed
		s.queue(c.key())
	case r != nil:
		s.recordOutcome(r, c)
		s.reviewSoon(r)
	case c.Err != nil:
		s.queueAfter(c.key(), s.options.Timing.TransientMax)
	default:
		s.startFarewell(c.key())
	}
}

// isOutdated reports whether the distribution's spec has changed since the request was planned.
func (c CopyWritten) isOutdated() bool { return c.run != nil && c.run.Distribution != c.Distribution }

// takeAnswer records the result of the requests for one target. So the next plan uses it before the watch shows it.
func (s *State) takeAnswer(c CopyWritten) {
	a := c.Answer
	switch {
	case a.Absent, a.Written != nil && a.Written.Labels[v1alpha1.LabelDistributedBy] == "": // gone, or handed back
		s.takeAbsent(c)
	case a.Written != nil:
		s.takeWritten(c)
	case a.Found != nil:
		s.takeFound(c)
	case a.Deleted: // the copy is dropped when a watch shows that it is gone
		if known := s.copies.atUID(c.Slot, c.Copy.UID); known != nil {
			known.Terminating = true
			s.copies.Put(c.Slot, known)
		}
	case a.Compared && c.isOutdated(): // the plan for the present spec decides whether the object is read again
		s.queue(c.key())
	case a.Compared && c.Action.Verb == Inspect:
		s.copies.change(c.Slot, c.Copy.UID, c.Copy.ResourceVersion, func(known *Copy) {
			known.Known, known.Drifted = true, known.Drifted || !a.Same
		})
		s.queue(c.key()) // the next plan restores the copy if it has drifted
	case a.Compared:
		s.takeExamined(c)
	case c.Err == nil && c.Action.Verb == Create: // what was in the way has gone
		s.queue(c.key())
	}
}

// takeAbsent removes the copy and the obstacle in a slot, after the API server's answer that the object is gone or no copy any more.
func (s *State) takeAbsent(c CopyWritten) {
	if c.Copy != nil {
		s.queueVanished(s.copies.dropUID(c.Slot, c.Copy.UID))
	}
	if c.run != nil {
		delete(c.run.obstacles, c.Slot.Namespace)
	}
}

// takeWritten takes in the copy that a write has left. No run has an obstacle in its slot any more. Under driftPolicy Revert the target is
// queued to be read whole, because a mutating admission may have changed what was written, in the operator's name.
func (s *State) takeWritten(c CopyWritten) {
	revert := c.Distribution != nil && c.Distribution.Drift == v1alpha1.DriftRevert
	if s.copies.takeWritten(c.Slot, c.Answer.Written, !revert) {
		for name := range s.copies.wantedBy[FamilyOf(c.Slot)] {
			if r := s.runs[name]; r != nil {
				delete(r.obstacles, c.Slot.Namespace)
			}
			if name != c.by { // the copy is an obstacle of this distribution; no watch will show it again
				s.queue(Key{name, c.Slot.Namespace})
			}
		}
	}
	if revert {
		s.queue(c.key())
	}
}

// takeFound takes in the object that a create has found in its slot. It may be the copy after all, because an answer was lost or the watch
// is behind; otherwise it is an obstacle.
func (s *State) takeFound(c CopyWritten) {
	o := s.readObstacle(c.Slot.Kind, c.Answer.Found)
	if o == nil {
		s.queue(s.copies.takeFound(c.Slot, c.Answer.Found)...)
		return
	}
	if r := s.runs[c.by]; r != nil && r == c.run && r.Problem == "" {
		r.obstacles[c.Slot.Namespace] = o
		s.keepWatch(r)
	}
}

// takeExamined records whether an obstacle, which was read whole, is identical to the template.
func (s *State) takeExamined(c CopyWritten) {
	known := c.run.obstacles[c.Slot.Namespace]
	if known == nil || known.ResourceVersion != c.SeenVersion() {
		return
	}
	examined := *known
	if examined.Examined, examined.Identical = true, c.Answer.Same; !c.Answer.Same {
		examined.Reason = v1alpha1.ReasonNotIdentical
	}
	c.run.obstacles[c.Slot.Namespace] = &examined
}

// ErrStale reports that the object has changed since the plan. The watch will show the newer version.
var ErrStale = errors.New("the object has changed meanwhile")

// recordOutcome records the result of a write, and when a failed one is tried again.
func (s *State) recordOutcome(r *run, c CopyWritten) {
	switch {
	case c.Err == nil:
		s.recordSuccess(r, c)
	case copies.IsNamespaceGone(c.Slot, c.Err):
		delete(r.troubles, c.Slot.Namespace)
	case errors.Is(c.Err, ErrStale), apierrors.IsConflict(c.Err):
		s.queueAfter(c.key(), time.Second) // usually the watch shows the newer version, and queues the key, before that
	case !apianswer.IsRefusal(c.Err):
		s.retryLater(r, c)
	case c.Action.Verb == Adopt || c.Action.Verb == Overwrite:
		s.recordNotTaken(r, c)
	default:
		s.recordRefusal(r, c)
	}
}

func (s *State) recordSuccess(r *run, c CopyWritten) {
	delete(r.troubles, c.Slot.Namespace)
	if c.Action.Verb == Create {
		delete(r.vanished, c.Slot.Namespace)
	}
	r.recordDeed(c.Action.Verb, c.Slot.Namespace)
	if window := s.options.Timing.LoopWindow; c.Distribution.isRepair(c.Action, c.Copy) && s.repairs.Note(c.Slot, s.now, window) {
		s.announceResult(c.Distribution, true, v1alpha1.ReasonDriftLoop, "another client keeps changing the copy in "+c.Slot.Namespace+
			": from now on the operator restores it only once in "+window.String()+". Find the client in managedFields and stop it")
	}
}

// putOff counts one more failed try of a target, and queues the target again after the time that backoff returns. A nil failure leaves an
// earlier one in place.
func (s *State) putOff(r *run, c CopyWritten, failure *Failure, backoff func(tries int) time.Duration) {
	known := r.troubles[c.Slot.Namespace]
	known.tries++
	if failure != nil {
		known.failure = failure
	}
	delay := backoff(known.tries)
	known.until = s.now.Add(delay)
	r.troubles[c.Slot.Namespace] = known
	s.queueAfter(c.key(), delay+time.Millisecond)
}

// backoffAt returns a function that returns how long a refused write at slot waits, by the number of tries.
func (s *State) backoffAt(slot copies.Slot) func(tries int) time.Duration {
	return func(tries int) time.Duration {
		return copies.Backoff(s.options.RetryMin, s.options.RetryMax, tries, slot)
	}
}

// recordNotTaken records that an obstacle could not be adopted or overwritten. If a field that can't change is the cause, the reason
// stays until the object changes. The target is put off, because the object may be deleted or changed meanwhile.
func (s *State) recordNotTaken(r *run, c CopyWritten) {
	namespace := c.Slot.Namespace
	s.putOff(r, c, nil, s.backoffAt(c.Slot))
	reason, final := findImmutable(c.Err)
	if !final {
		s.emitOutput(copies.Log{Message: "an object could not be taken over for ResourceDistribution " + r.Name, Slot: c.Slot, Err: c.Err})
		return
	}
	if known := r.obstacles[namespace]; known != nil {
		settled := *known
		settled.Reason, settled.Examined = reason, true
		r.obstacles[namespace] = &settled
	}
}

// recordRefusal records that the API server refused a copy.
func (s *State) recordRefusal(r *run, c CopyWritten) {
	f := &Failure{Reason: v1alpha1.ReasonRejected, Message: describeRefusal(c.Err), Final: true}
	if reason, ok := findImmutable(c.Err); ok {
		f.Reason, f.Message = reason, "the copy there is immutable, or has another type: delete it, and the operator creates it again; "+f.Message
	} else if apierrors.IsForbidden(c.Err) {
		f.Reason = v1alpha1.ReasonForbidden
	}
	if apianswer.IsQuotaExceeded(c.Err) { // room comes when something else in the namespace is deleted
		f.Final, f.Message = false, f.Message+"; the operator tries again by itself; raise the quota, or delete objects that count toward it"
	}
	s.putOff(r, c, f, s.backoffAt(c.Slot))
}

// retryLater puts off a write that failed without a refusal: no connection, 429, 5xx.
func (s *State) retryLater(r *run, c CopyWritten) {
	s.putOff(r, c, nil, func(tries int) time.Duration {
		return copies.TransientBackoff(s.options.Timing.TransientMin, s.options.Timing.TransientMax, tries, c.Slot, c.Err)
	})
	if line, ok := s.failed.Add(s.now, c.Slot, c.Err); ok {
		s.emitOutput(line)
	}
}

// describeRefusal returns the API server's message. For an object whose fields are invalid it returns only the fields' paths, because the
// message has values, which may be secret. A refusal by a policy or a webhook names no field, so its message is returned.
func describeRefusal(err error) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return err.Error()
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" {
			fields = append(fields, cause.Field)
		}
	}
	if len(fields) == 0 {
		return err.Error()
	}
	return "the API server refuses it as invalid: " + strings.Join(fields, " ")
}

// findImmutable returns the reason if a write was refused because of a field that cannot change: ReasonTypeDiffers or ReasonImmutable; it
// returns false for other errors, such as data that are too long.
func findImmutable(err error) (v1alpha1.Reason, bool) {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Details == nil {
		return "", false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseType(field.ErrorTypeTooLong) {
			continue
		}
		switch cause.Field {
		case "type":
			return v1alpha1.ReasonTypeDiffers, true
		case "data", "binaryData", "immutable":
			return v1alpha1.ReasonImmutable, true
		}
	}
	return "", false
}
