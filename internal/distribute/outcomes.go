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

// outcomes are what follows from writes that have succeeded or failed.
type outcomes struct {
	*core
	events  *events
	repairs *copies.Repairs
	failed  copies.FailedRequests
}

// loopWait returns how long an action must wait: 0 unless it restores a copy that somebody changes in a loop.
func (o *outcomes) loopWait(r *run, namespace string, a Action, c *Copy) time.Duration {
	if !r.isRepair(a, c) {
		return 0
	}
	return o.repairs.Wait(r.Template.Slot(namespace), o.now, o.options.Timing.LoopWindow)
}

// countLoops returns how many copies of a distribution somebody changes in a loop.
func (o *outcomes) countLoops(r *run, now time.Time) int {
	if r.Template == nil {
		return 0
	}
	return o.repairs.Loops(r.Template.Slot(""), now, o.options.Timing.LoopWindow)
}

// ErrStale reports that the object has changed since the plan. The watch will show the newer version.
var ErrStale = errors.New("the object has changed meanwhile")

// recordWrite records the result of a write, and when a failed one is tried again.
func (o *outcomes) recordWrite(r *run, c CopyWritten) {
	switch {
	case c.Err == nil:
		o.recordSuccess(r, c)
	// Before the refusals, to which this 403 or 404 would belong, too: such a target has no failure (DIST-D14).
	case copies.IsNamespaceGone(c.Slot, c.Err):
		r.troubles.clearTrouble(c.Slot.Namespace)
	case errors.Is(c.Err, ErrStale), apierrors.IsConflict(c.Err):
		o.queueAfter(c.key(), time.Second) // usually the watch shows the newer version, and queues the key, before that
	case !apianswer.IsRefusal(c.Err):
		o.retryLater(r, c)
	// An obstacle that can't be taken over is a conflict, and no failed copy.
	case c.Action.Verb == Adopt || c.Action.Verb == Overwrite:
		o.recordNotTaken(r, c)
	default:
		o.recordRefusal(r, c)
	}
}

func (o *outcomes) recordSuccess(r *run, c CopyWritten) {
	r.troubles.clearTrouble(c.Slot.Namespace)
	if c.Action.Verb == Create {
		r.troubles.recordCreated(c.Slot.Namespace)
	}
	r.done.recordAction(c.Action.Verb, c.Slot.Namespace)
	if window := o.options.Timing.LoopWindow; c.Distribution.isRepair(c.Action, c.Copy) && o.repairs.Note(c.Slot, o.now, window) {
		o.events.announceResult(c.Distribution, true, v1alpha1.ReasonDriftLoop, "another client keeps changing the copy in "+c.Slot.Namespace+
			": from now on the operator restores it only once in "+window.String()+". Find the client in managedFields and stop it")
	}
}

// putOff counts one more failed try of a target, and queues the target again after the time that backoff returns. A nil
// failure leaves an earlier one in place.
func (o *outcomes) putOff(r *run, c CopyWritten, failure *Failure, backoff func(tries int) time.Duration) {
	o.queueAfter(c.key(), r.troubles.putOff(c.Slot.Namespace, failure, o.now, backoff)+time.Millisecond)
}

// backoffAt returns a function that returns how long a refused write at slot waits, by the number of tries.
func (o *outcomes) backoffAt(slot copies.Slot) func(tries int) time.Duration {
	return func(tries int) time.Duration {
		return copies.Backoff(o.options.RetryMin, o.options.RetryMax, tries, slot)
	}
}

// recordNotTaken records that an obstacle could not be adopted or overwritten. If a field that can't change is the
// cause, the reason stays until the object changes. The target is put off, because the object may be deleted or changed
// meanwhile.
func (o *outcomes) recordNotTaken(r *run, c CopyWritten) {
	o.putOff(r, c, nil, o.backoffAt(c.Slot))
	reason, final := findImmutable(c.Err)
	if !final {
		o.emitOutput(copies.Log{Message: "an object could not be taken over for ResourceDistribution " + r.Name, Slot: c.Slot, Err: c.Err})
		return
	}
	r.obstacles.changeObstacle(c.Slot.Namespace, c.SeenVersion(), func(known Obstacle) Obstacle { return known.settled(reason) })
}

// recordRefusal records that the API server refused a copy.
func (o *outcomes) recordRefusal(r *run, c CopyWritten) {
	f := &Failure{Reason: v1alpha1.ReasonRejected, Message: describeRefusal(c.Err), Final: true}
	if reason, ok := findImmutable(c.Err); ok {
		f.Reason, f.Message = reason, "the copy there is immutable, or has another type: delete it, and the operator creates it again; "+f.Message
	} else if apierrors.IsForbidden(c.Err) {
		f.Reason = v1alpha1.ReasonForbidden
	}
	if apianswer.IsQuotaExceeded(c.Err) { // room comes when something else in the namespace is deleted
		f.Final, f.Message = false, f.Message+"; the operator tries again by itself; raise the quota, or delete objects that count toward it"
	}
	o.putOff(r, c, f, o.backoffAt(c.Slot))
}

// retryLater puts off a write that failed without a refusal: no connection, 429, 5xx.
func (o *outcomes) retryLater(r *run, c CopyWritten) {
	o.putOff(r, c, nil, func(tries int) time.Duration {
		return copies.TransientBackoff(o.options.Timing.TransientMin, o.options.Timing.TransientMax, tries, c.Slot, c.Err)
	})
	if line, ok := o.failed.Add(o.now, c.Slot, c.Err); ok {
		o.emitOutput(line)
	}
}

// describeRefusal returns the API server's message. For an object whose fields are invalid it returns only the fields'
// paths, because the message has values, which may be secret. A refusal by a policy or a webhook names no field, so its
// message is returned.
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

// findImmutable returns the reason if a write was refused because of a field that cannot change: ReasonTypeDiffers or
// ReasonImmutable; it returns false for other errors, such as data that are too long.
func findImmutable(err error) (v1alpha1.Reason, bool) {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Details == nil {
		return "", false
	}
	for _, cause := range status.Status().Details.Causes {
		// Data that are too long name the same field as data that can't change, but another template cures them.
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
