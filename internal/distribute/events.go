package distribute

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// events are sent on ResourceDistributions, and on the objects that are in their way.
type events struct{ *core }

// doneActions are the successful actions on one ResourceDistribution's copies that no Event has reported yet:
// namespaces, by the Event's reason.
type doneActions map[v1alpha1.Reason][]string

// announceResult sends an Event on a ResourceDistribution.
func (e *events) announceResult(d *Distribution, warning bool, reason v1alpha1.Reason, message string) {
	e.emitOutput(copies.Event{
		Slot: copies.Slot{Name: d.Name}, Kind: v1alpha1.GroupVersion.WithKind(Kind), UID: d.UID, Warning: warning,
		Reason: reason, Message: message,
	})
}

// doneReasons has, for each verb whose success is reported in an Event, the Event's reason. These verbs change or
// delete objects that users may look for.
var doneReasons = map[Verb]v1alpha1.Reason{
	Adopt: v1alpha1.ReasonAdopted, Overwrite: v1alpha1.ReasonOverwrote, Delete: v1alpha1.ReasonRemoved, HandBack: v1alpha1.ReasonRemoved,
}

// recordAction records a successful action in a namespace until an Event reports it.
func (d doneActions) recordAction(verb Verb, namespace string) {
	if reason, ok := doneReasons[verb]; ok {
		d[reason] = append(d[reason], namespace)
	}
}

// announceDone sends one Event for each reason in done, with the namespaces, and clears done.
func (e *events) announceDone(d *Distribution, done doneActions) {
	for reason, names := range done {
		what := map[v1alpha1.Reason]string{
			v1alpha1.ReasonAdopted:   "the operator took over the object, with its content unchanged, in",
			v1alpha1.ReasonOverwrote: "the operator overwrote the object in",
			v1alpha1.ReasonRemoved:   "the operator deleted the copy, or handed the object back, in",
		}[reason]
		e.announceResult(d, reason == v1alpha1.ReasonOverwrote, reason, what+" "+firstNames(names))
	}
	clear(done)
}

// firstNames returns the first ten names as text, and how many more there are.
func firstNames(names []string) string {
	const most = 10
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// announceChange sends Events for changes of the conditions ConflictFree and Ready. nowReady is true if the
// distribution is ready and the reason of Ready has changed.
func (e *events) announceChange(d *Distribution, was, now *v1alpha1.ResourceDistributionStatus) (nowReady bool) {
	free, before := v1alpha1.FindCondition(now.Conditions, v1alpha1.ConditionConflictFree),
		v1alpha1.FindCondition(was.Conditions, v1alpha1.ConditionConflictFree)
	switch conflicted := before != nil && before.Status == metav1.ConditionFalse; {
	case free.Status == metav1.ConditionFalse && !conflicted:
		e.announceResult(d, true, v1alpha1.ReasonConflict, free.Message)
	case free.Status == metav1.ConditionTrue && conflicted:
		e.announceResult(d, false, v1alpha1.ReasonConflictResolved, free.Message)
	}
	ready, old := v1alpha1.FindCondition(now.Conditions, v1alpha1.ConditionReady),
		v1alpha1.FindCondition(was.Conditions, v1alpha1.ConditionReady)
	if old != nil && old.Reason == ready.Reason {
		return false
	}
	switch reason := v1alpha1.Reason(ready.Reason); reason {
	case v1alpha1.ReasonDistributed:
		e.announceResult(d, false, reason, ready.Message)
	case v1alpha1.ReasonFailed, v1alpha1.ReasonNamespaceNotFound, v1alpha1.ReasonNamespaceReplaced, v1alpha1.ReasonInvalidResource,
		v1alpha1.ReasonKindNotAllowed, v1alpha1.ReasonNotObserved:
		e.announceResult(d, true, reason, ready.Message)
	}
	return ready.Status == metav1.ConditionTrue
}

// announceObstacles sends an Event on each obstacle that was not in the status before, at most 100 each time, so that
// the object's owner sees it. An object that is being deleted gets none.
func (e *events) announceObstacles(d *Distribution, was *v1alpha1.ResourceDistributionStatus, results []Result) {
	known := map[string]bool{}
	for _, one := range was.ConflictingNamespaces {
		known[one.Name] = true
	}
	most := 100
	for _, one := range results {
		if one.State != InConflict || known[one.Namespace] || most == 0 || one.Conflict.Reason == v1alpha1.ReasonBeingDeleted {
			continue
		}
		most--
		e.emitOutput(copies.Event{
			Slot: d.Template.Slot(one.Namespace), Kind: d.Template.Kind, UID: one.Conflict.UID, Warning: true,
			Reason: v1alpha1.ReasonDistributionConflict, Message: describeForOwner(d),
		})
	}
}

// describeForOwner returns the message of the Event on an obstacle's object.
func describeForOwner(d *Distribution) string {
	return "ResourceDistribution " + d.Name + " can't write its " + d.Template.Kind.Kind + " here, because this object has its name. " +
		"The operator doesn't change this object: rename one of the two"
}
