package sudo

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// announce sends the Events of a transition that was written.
func (r *Reconciler) announce(f *sudo.Facts, is *v1alpha1.SudoRequest) {
	was, now := findActive(f.Request), findActive(is)
	if was == nil {
		r.Events.Event(is, corev1.EventTypeNormal, string(v1alpha1.ReasonSudoRequested),
			fmt.Sprintf("%s asks for sudo for %s: %s", is.Spec.User, is.Spec.Duration, is.Spec.Reason))
	}
	if was != nil && was.Status == now.Status && was.Reason == now.Reason {
		return
	}
	countTransition(f, was, now, is)
	wasGranted := was != nil && was.Status == metav1.ConditionTrue
	switch {
	case now.Reason == string(v1alpha1.ReasonNotEnded):
		r.Events.Event(is, corev1.EventTypeWarning, now.Reason, now.Message)
	case now.Status == metav1.ConditionTrue:
		r.Events.Event(is, corev1.EventTypeNormal, string(v1alpha1.ReasonSudoGranted), now.Message)
		if is.Spec.BreakGlass {
			r.announceBreakGlass(f, is)
		}
	case sudo.IsFinished(is) && wasGranted:
		r.Events.Event(is, corev1.EventTypeNormal, string(v1alpha1.ReasonSudoEnded), now.Reason+": "+now.Message)
	case sudo.IsFinished(is):
		r.Events.Event(is, corev1.EventTypeNormal, string(v1alpha1.ReasonSudoDenied), now.Reason+": "+now.Message)
	case now.Reason == string(v1alpha1.ReasonTimerMissing):
		r.Events.Event(is, corev1.EventTypeWarning, now.Reason, now.Message)
	}
}

func (r *Reconciler) announceBreakGlass(f *sudo.Facts, is *v1alpha1.SudoRequest) {
	message := fmt.Sprintf("%s has sudo in %s for %s without approval: %s", is.Spec.User, is.Namespace, is.Spec.Duration, is.Spec.Reason)
	r.Events.Event(is, corev1.EventTypeWarning, string(v1alpha1.ReasonBreakGlass), message)
	if f.Tenant != nil {
		r.Events.Event(f.Tenant, corev1.EventTypeWarning, string(v1alpha1.ReasonBreakGlass), message)
	}
}

func (r *Reconciler) announceLate(f *sudo.Facts) {
	r.Events.Event(f.Request, corev1.EventTypeWarning, string(v1alpha1.ReasonTimerLate),
		"the operator ended the right of "+f.Request.Spec.User+", because the controller manager did not delete the timer at its time")
}

func findActive(r *v1alpha1.SudoRequest) *metav1.Condition {
	return v1alpha1.FindCondition(r.Status.Conditions, v1alpha1.ConditionActive)
}
