package distribution

import (
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// errStale says that the object has changed since the watch brought it. The watch will bring the newer version.
var errStale = errors.New("the object has changed meanwhile")

// outcomes records the results of writes, and when failed ones are tried again.
type outcomes struct {
	settings *Settings
	timing   Timing
	queue    *queue
	repairs  *copies.Repairs
	events   *events
}

// note records the result of a write; a nil err is success.
func (o *outcomes) note(w work, err error) {
	switch {
	case err == nil:
		o.noteSuccess(w)
	case copies.IsNamespaceGone(w.slot, err):
		w.run.troubles.clear(w.slot.Namespace)
	case errors.Is(err, errStale), apierrors.IsConflict(err):
		o.queue.AddAfter(w.key(), time.Second) // usually the watch brings the newer version, and queues the key, before that
	case w.action.Verb == distribute.Adopt || w.action.Verb == distribute.Overwrite:
		o.noteNotTaken(w, err)
	case apianswer.IsRefusal(err):
		o.noteRefusal(w, err)
	default:
		o.retryLater(w, err)
	}
}

func (o *outcomes) noteSuccess(w work) {
	w.run.troubles.clear(w.slot.Namespace)
	w.run.deeds.note(w.action.Verb, w.slot.Namespace)
	if w.isRepair() && o.repairs.Note(w.slot, time.Now(), o.timing.LoopWindow) {
		o.events.tellLoop(w.distribution, w.slot.Namespace, o.timing.LoopWindow)
	}
}

// backOff returns how long a refused write waits after so many tries.
func (o *outcomes) backOff(tries int) time.Duration {
	s := o.settings
	return copies.Backoff(s.RetryMin, s.RetryMax, tries)
}

// noteNotTaken records that an obstacle could not be adopted or overwritten: it stays in conflict until it changes. The target is
// put off first, so that no worker tries again in between.
func (o *outcomes) noteNotTaken(w work, err error) {
	namespace := w.slot.Namespace
	delay, _ := w.run.troubles.note(namespace, nil, o.backOff)
	o.queue.AddAfter(w.key(), delay+time.Millisecond) // the object may go, or change, while the target is put off
	reason, final := findImmutable(err)
	if !final {
		ctrl.Log.WithName("distribution").Error(err, "an object could not be taken up", "distribution", w.run.name, "namespace", namespace)
		return
	}
	w.run.changeObstacle(namespace, func(known *distribute.Obstacle) *distribute.Obstacle {
		if known == nil {
			return nil
		}
		settled := *known
		settled.Reason, settled.Examined = reason, true
		return &settled
	})
}

// noteRefusal records that the API server refused a copy.
func (o *outcomes) noteRefusal(w work, err error) {
	f := &distribute.Failure{Reason: v1alpha1.ReasonRejected, Message: describeRefusal(err), Final: true}
	if reason, ok := findImmutable(err); ok {
		f.Reason, f.Message = reason, "the copy there is immutable, or of another type: delete it, and it is made anew; "+f.Message
	} else if apierrors.IsForbidden(err) {
		f.Reason = v1alpha1.ReasonForbidden
	}
	if apianswer.IsQuotaExceeded(err) { // room comes when something else in the namespace goes
		f.Final, f.Message = false, f.Message+"; it is tried again by itself"
	}
	delay, _ := w.run.troubles.note(w.slot.Namespace, f, o.backOff)
	o.queue.AddAfter(w.key(), delay+time.Millisecond)
}

// retryLater puts off a write that failed without a refusal: no connection, 429, 5xx.
func (o *outcomes) retryLater(w work, err error) {
	delay, tries := w.run.troubles.note(w.slot.Namespace, nil, func(tries int) time.Duration {
		return copies.TransientBackoff(o.timing.TransientMin, o.timing.TransientMax, tries, err)
	})
	if tries == 1 {
		ctrl.Log.WithName("distribution").Error(err, "a request failed; it is tried again", "slot", w.slot.String())
	}
	o.queue.AddAfter(w.key(), delay+time.Millisecond)
}

// describeRefusal returns the API server's message. For an object whose fields are invalid it returns only the fields' paths, because
// the message has values, which may be secret. A policy or a webhook of the cluster names no field, and its message is shown.
func describeRefusal(err error) string {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // straight from the client
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

// findImmutable returns the reason if a PUT was refused because of a field that can't change: ReasonTypeDiffers or ReasonImmutable;
// false for other errors.
func findImmutable(err error) (v1alpha1.Reason, bool) {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // straight from the client
	if !ok || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Details == nil {
		return "", false
	}
	for _, cause := range status.Status().Details.Causes {
		switch cause.Field {
		case "type":
			return v1alpha1.ReasonTypeDiffers, true
		case "data", "binaryData", "immutable":
			return v1alpha1.ReasonImmutable, true
		}
	}
	return "", false
}
