package distribution

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// errStale says that the object has changed since the watch showed it: the newer view comes.
var errStale = errors.New("the object has changed meanwhile")

// trouble is what keeps a target from being what it should be.
type trouble struct {
	failure *distribute.Failure // nil for what passes by itself
	tries   int
	until   time.Time
	due     bool // until has come
}

// finish notes what a write has come to.
func (c *Controller) finish(w work, err error) {
	namespace := w.slot.Namespace
	switch {
	case err == nil:
		c.succeeded(w)
	case copying.IsNamespaceGone(w.slot, err):
		c.mu.Lock()
		delete(w.troubles, namespace)
		c.mu.Unlock()
	case errors.Is(err, errStale), apierrors.IsConflict(err):
		c.queue.AddAfter(key{w.Name, namespace}, time.Second) // the watch tells sooner
	case w.action.Verb == distribute.Adopt || w.action.Verb == distribute.Overwrite:
		c.notTaken(w, err)
	case apianswer.IsRefusal(err):
		c.refused(w, err)
	default:
		c.retryLater(w, err)
	}
}

// told are the verbs that are told in Events.
var told = map[distribute.Verb]v1alpha1.Reason{
	distribute.Adopt: v1alpha1.ReasonAdopted, distribute.Overwrite: v1alpha1.ReasonOverwrote,
	distribute.Delete: v1alpha1.ReasonRemoved, distribute.HandBack: v1alpha1.ReasonRemoved,
}

func (c *Controller) succeeded(w work) {
	c.mu.Lock()
	delete(w.troubles, w.slot.Namespace)
	if reason, ok := told[w.action.Verb]; ok {
		w.done[reason] = append(w.done[reason], w.slot.Namespace)
	}
	c.mu.Unlock()
	if w.isRepair() && c.repairs.Note(w.slot, time.Now(), c.Timing.LoopWindow) {
		c.event(w.distribution, corev1.EventTypeWarning, v1alpha1.ReasonDriftLoop,
			"somebody changes the copy in "+w.slot.Namespace+" again and again; from now on it is put back once in "+c.Timing.LoopWindow.String()+": stop who writes there")
	}
}

// notTaken notes that somebody's object could not be taken up: it stays in conflict until it changes.
func (c *Controller) notTaken(w work, err error) {
	reason, final := immutable(err)
	c.mu.Lock()
	if o := w.obstacles[w.slot.Namespace]; final && o != nil {
		settled := *o
		settled.Reason, settled.Examined = reason, true
		w.obstacles[w.slot.Namespace] = &settled
	}
	t := w.trouble(w.slot.Namespace)
	delay := copying.Backoff(c.settings.RetryMin, c.settings.RetryMax, t.tries)
	t.until = time.Now().Add(delay)
	c.mu.Unlock()
	if !final {
		ctrl.Log.WithName("distribution").Error(err, "an object could not be taken up", "distribution", w.Name, "namespace", w.slot.Namespace)
		c.queue.AddAfter(key{w.Name, w.slot.Namespace}, delay+time.Millisecond)
	}
}

// refused notes that the API server does not take a copy.
func (c *Controller) refused(w work, err error) {
	f := &distribute.Failure{Reason: v1alpha1.ReasonRejected, Message: message(err), Final: true}
	if reason, ok := immutable(err); ok {
		f.Reason, f.Message = reason, "the copy there is immutable, or of another type: delete it, and it is made anew; "+f.Message
	} else if apierrors.IsForbidden(err) {
		f.Reason = v1alpha1.ReasonForbidden
	}
	c.mu.Lock()
	t := w.trouble(w.slot.Namespace)
	t.failure = f
	delay := copying.Backoff(c.settings.RetryMin, c.settings.RetryMax, t.tries)
	t.until = time.Now().Add(delay)
	c.mu.Unlock()
	c.queue.AddAfter(key{w.Name, w.slot.Namespace}, delay+time.Millisecond)
}

// message is what the API server says of fields, without their values.
func message(err error) string {
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

// retryLater is for what fails without being refused: no connection, 429, 5xx.
func (c *Controller) retryLater(w work, err error) {
	c.mu.Lock()
	t := w.trouble(w.slot.Namespace)
	delay := copying.TransientBackoff(c.Timing.TransientMin, c.Timing.TransientMax, t.tries, err)
	t.until = time.Now().Add(delay)
	first := t.tries == 1
	c.mu.Unlock()
	if first {
		ctrl.Log.WithName("distribution").Error(err, "a request failed; it is tried again", "slot", w.slot.String())
	}
	c.queue.AddAfter(key{w.Name, w.slot.Namespace}, delay+time.Millisecond)
}

// trouble counts one more try of a target. The caller holds the controller's lock.
func (r *run) trouble(namespace string) *trouble {
	t := r.troubles[namespace]
	if t == nil {
		t = &trouble{}
		r.troubles[namespace] = t
	}
	t.tries++
	t.due = false
	return t
}

// isRepair says whether a write puts back what somebody changed, rather than following the distribution.
func (w work) isRepair() bool {
	return w.action.Verb == distribute.Update && w.copy.Content == w.distribution.Template.Content
}
