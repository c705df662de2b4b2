package distribution

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// errStale says that the object has changed since the watch showed it: the newer view comes.
var errStale = errors.New("the object has changed meanwhile")

// outcomes note what writes have come to, and when they are tried again.
type outcomes struct {
	settings *atomic.Pointer[Settings]
	timing   Timing
	queue    *queue
	repairs  *copying.Repairs
	events   *events
}

// note notes what a write has come to.
func (o *outcomes) note(w work, err error) {
	switch {
	case err == nil:
		o.noteSuccess(w)
	case copying.IsNamespaceGone(w.slot, err):
		w.run.troubles.clear(w.slot.Namespace)
	case errors.Is(err, errStale), apierrors.IsConflict(err):
		o.queue.AddAfter(w.key(), time.Second) // the watch tells sooner
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

// backOff is how long to wait with what is refused.
func (o *outcomes) backOff(tries int) time.Duration {
	s := o.settings.Load()
	return copying.Backoff(s.RetryMin, s.RetryMax, tries)
}

// noteNotTaken notes that somebody's object could not be taken up: it stays in conflict until it changes. The target is put off first, so that
// nobody tries again in between.
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

// noteRefusal notes that the API server does not take a copy.
func (o *outcomes) noteRefusal(w work, err error) {
	f := &distribute.Failure{Reason: v1alpha1.ReasonRejected, Message: describeRefusal(err), Final: true}
	if reason, ok := findImmutable(err); ok {
		f.Reason, f.Message = reason, "the copy there is immutable, or of another type: delete it, and it is made anew; "+f.Message
	} else if apierrors.IsForbidden(err) {
		f.Reason = v1alpha1.ReasonForbidden
	}
	delay, _ := w.run.troubles.note(w.slot.Namespace, f, o.backOff)
	o.queue.AddAfter(w.key(), delay+time.Millisecond)
}

// retryLater is for what fails without being refused: no connection, 429, 5xx.
func (o *outcomes) retryLater(w work, err error) {
	delay, tries := w.run.troubles.note(w.slot.Namespace, nil, func(tries int) time.Duration {
		return copying.TransientBackoff(o.timing.TransientMin, o.timing.TransientMax, tries, err)
	})
	if tries == 1 {
		ctrl.Log.WithName("distribution").Error(err, "a request failed; it is tried again", "slot", w.slot.String())
	}
	o.queue.AddAfter(w.key(), delay+time.Millisecond)
}

// describeRefusal is what the API server says of fields, without their values.
func describeRefusal(err error) string {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // straight from the client
	if !ok || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return err.Error()
	}
	text := "the API server refuses it as invalid:"
	for _, cause := range status.Status().Details.Causes {
		text += " " + cause.Field
	}
	return text
}

// findImmutable says whether a PUT was refused because of a field that can't change, and which kind of obstacle that is.
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
