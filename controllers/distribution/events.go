package distribution

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// events sends Events on ResourceDistributions, and on obstacles.
type events struct{ recorder record.EventRecorder }

// send sends an Event on a ResourceDistribution.
func (e *events) send(d *distribute.Distribution, eventType string, reason v1alpha1.Reason, message string) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(distribute.Kind))
	object.Name, object.UID = d.Name, types.UID(d.UID)
	e.recorder.Event(object, eventType, string(reason), message)
}

// tellDeeds sends one Event for each reason in done, with the namespaces.
func (e *events) tellDeeds(d *distribute.Distribution, done map[v1alpha1.Reason][]string) {
	for reason, names := range done {
		what := map[v1alpha1.Reason]string{
			v1alpha1.ReasonAdopted: "the object was taken up as it is in", v1alpha1.ReasonOverwrote: "the object was overwritten in",
			v1alpha1.ReasonRemoved: "the copy was removed, or handed back, in",
		}[reason]
		eventType := corev1.EventTypeNormal
		if reason == v1alpha1.ReasonOverwrote {
			eventType = corev1.EventTypeWarning
		}
		e.send(d, eventType, reason, what+" "+first(names))
	}
}

// first returns the first ten names as text, and how many more there are.
func first(names []string) string {
	const most = 10
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// tellChange sends Events for changes of the conditions ConflictFree and Ready. It says whether the distribution is ready, for
// another reason than before.
func (e *events) tellChange(d *distribute.Distribution, was, now *v1alpha1.ResourceDistributionStatus) (nowReady bool) {
	free, before := v1alpha1.FindCondition(now.Conditions, v1alpha1.ConditionConflictFree), v1alpha1.FindCondition(was.Conditions, v1alpha1.ConditionConflictFree)
	switch conflicted := before != nil && before.Status == metav1.ConditionFalse; {
	case free.Status == metav1.ConditionFalse && !conflicted:
		e.send(d, corev1.EventTypeWarning, v1alpha1.ReasonConflict, free.Message)
	case free.Status == metav1.ConditionTrue && conflicted:
		e.send(d, corev1.EventTypeNormal, v1alpha1.ReasonConflictResolved, free.Message)
	}
	ready, old := v1alpha1.FindCondition(now.Conditions, v1alpha1.ConditionReady), v1alpha1.FindCondition(was.Conditions, v1alpha1.ConditionReady)
	if old != nil && old.Reason == ready.Reason {
		return false
	}
	switch reason := v1alpha1.Reason(ready.Reason); reason {
	case v1alpha1.ReasonDistributed:
		e.send(d, corev1.EventTypeNormal, reason, ready.Message)
	case v1alpha1.ReasonFailed, v1alpha1.ReasonNamespaceNotFound, v1alpha1.ReasonNamespaceReplaced, v1alpha1.ReasonInvalidResource, v1alpha1.ReasonKindNotAllowed, v1alpha1.ReasonNotObserved:
		e.send(d, corev1.EventTypeWarning, reason, ready.Message)
	}
	return ready.Status == metav1.ConditionTrue
}

// tellObstacles sends an Event on each obstacle that was not in the status before, at most 100 per call, so that the object's owner
// sees it.
func (e *events) tellObstacles(d *distribute.Distribution, was *v1alpha1.ResourceDistributionStatus, results []distribute.Result) {
	known := map[string]bool{}
	for _, one := range was.ConflictingNamespaces {
		known[one.Name] = true
	}
	const most = 100
	said := 0
	for _, one := range results {
		if one.State != distribute.InConflict || known[one.Namespace] || said == most || one.Conflict.Reason == v1alpha1.ReasonBeingDeleted {
			continue
		}
		said++
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(d.Template.Kind)
		object.Namespace, object.Name, object.UID = one.Namespace, d.Template.Name, types.UID(one.Conflict.UID)
		e.recorder.Event(object, corev1.EventTypeWarning, string(v1alpha1.ReasonDistributionConflict), distribute.EventText(d))
	}
}

// tellLoop sends an Event that somebody changes a copy again and again, and that it is restored only once per window from now on.
func (e *events) tellLoop(d *distribute.Distribution, namespace string, window time.Duration) {
	e.send(d, corev1.EventTypeWarning, v1alpha1.ReasonDriftLoop,
		"somebody changes the copy in "+namespace+" again and again; from now on it is put back once in "+window.String()+": stop who writes there")
}
