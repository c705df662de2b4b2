package distribution

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// report writes the status if it has changed: at once where it is urgent, else not more often than Timing says. found holds for d:
// once that has changed, nothing is said, because its next review is queued. It returns false if the status is not written that
// should be.
func (c *Controller) report(ctx context.Context, r *run, d *distribute.Distribution, found distribute.Review, urgent bool) bool {
	c.mu.Lock()
	was, resourceVersion := r.reported, r.ResourceVersion
	now := normal(d.Status(found, &was))
	pace := c.Timing.Last
	if ready := v1alpha1.FindCondition(now.Conditions, v1alpha1.ConditionReady); ready.Reason == string(v1alpha1.ReasonProgressing) {
		pace = c.Timing.Pace
	}
	wait := time.Until(r.lastSaid.Add(pace))
	done := r.done
	switch {
	case c.runs[d.Name] != r || r.Distribution != d:
		c.mu.Unlock()
		return false
	case reflect.DeepEqual(was, now):
		r.done = map[v1alpha1.Reason][]string{}
		c.mu.Unlock()
		c.tellDone(d, done)
		return true
	case !urgent && wait > 0:
		c.mu.Unlock()
		c.queue.AddAfter(key{distribution: d.Name}, wait)
		return false
	}
	r.lastSaid, r.done = time.Now(), map[v1alpha1.Reason][]string{}
	c.mu.Unlock()
	if err := c.writeStatus(ctx, r, d, resourceVersion, now); err != nil {
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			ctrl.Log.WithName("distribution").Error(err, "writing a status; it is tried again", "distribution", d.Name)
		}
		c.mu.Lock()
		for reason, names := range done {
			r.done[reason] = append(names, r.done[reason]...)
		}
		c.mu.Unlock()
		c.queue.AddAfter(key{distribution: d.Name}, c.Timing.Last)
		return false
	}
	c.tellDone(d, done)
	c.tellChange(d, &was, &now)
	c.tellObstacles(d, &was, found.Results)
	return true
}

// normal is a status as the API server returns it.
func normal(s v1alpha1.ResourceDistributionStatus) v1alpha1.ResourceDistributionStatus {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // no channels, no functions
	}
	same := v1alpha1.ResourceDistributionStatus{}
	if err := json.Unmarshal(data, &same); err != nil {
		panic(err)
	}
	return same
}

// writeStatus sends the status alone: the API server takes everything else from what it has.
func (c *Controller) writeStatus(ctx context.Context, r *run, d *distribute.Distribution, resourceVersion string, now v1alpha1.ResourceDistributionStatus) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timing.Write)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": distribute.Kind,
		"metadata": map[string]any{"name": d.Name, "uid": d.UID, "resourceVersion": resourceVersion},
		"status":   now,
	})
	if err != nil {
		return err
	}
	meta, err := c.writer.UpdateStatus(ctx, distributions, d.Name, body)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.ResourceVersion == resourceVersion {
		r.ResourceVersion = meta.ResourceVersion
	}
	r.reported = now
	return nil
}

func (c *Controller) event(d *distribute.Distribution, eventType string, reason v1alpha1.Reason, message string) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(distribute.Kind))
	object.Name, object.UID = d.Name, types.UID(d.UID)
	c.Events.Event(object, eventType, string(reason), message)
}

// tellDone tells what was done to objects that others may miss, or look for.
func (c *Controller) tellDone(d *distribute.Distribution, done map[v1alpha1.Reason][]string) {
	for reason, names := range done {
		what := map[v1alpha1.Reason]string{
			v1alpha1.ReasonAdopted: "the object was taken up as it is in", v1alpha1.ReasonOverwrote: "the object was overwritten in",
			v1alpha1.ReasonRemoved: "the copy was removed, or handed back, in",
		}[reason]
		eventType := corev1.EventTypeNormal
		if reason == v1alpha1.ReasonOverwrote {
			eventType = corev1.EventTypeWarning
		}
		c.event(d, eventType, reason, what+" "+first(names))
	}
}

// first are at most ten names.
func first(names []string) string {
	const most = 10
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// tellChange tells of transitions.
func (c *Controller) tellChange(d *distribute.Distribution, was, now *v1alpha1.ResourceDistributionStatus) {
	free, before := v1alpha1.FindCondition(now.Conditions, v1alpha1.ConditionConflictFree), v1alpha1.FindCondition(was.Conditions, v1alpha1.ConditionConflictFree)
	switch conflicted := before != nil && before.Status == metav1.ConditionFalse; {
	case free.Status == metav1.ConditionFalse && !conflicted:
		c.event(d, corev1.EventTypeWarning, v1alpha1.ReasonConflict, free.Message)
	case free.Status == metav1.ConditionTrue && conflicted:
		c.event(d, corev1.EventTypeNormal, v1alpha1.ReasonConflictResolved, free.Message)
	}
	ready, old := v1alpha1.FindCondition(now.Conditions, v1alpha1.ConditionReady), v1alpha1.FindCondition(was.Conditions, v1alpha1.ConditionReady)
	if old != nil && old.Reason == ready.Reason {
		return
	}
	switch reason := v1alpha1.Reason(ready.Reason); reason {
	case v1alpha1.ReasonDistributed:
		c.event(d, corev1.EventTypeNormal, reason, ready.Message)
	case v1alpha1.ReasonFailed, v1alpha1.ReasonNamespaceNotFound, v1alpha1.ReasonInvalidResource, v1alpha1.ReasonKindNotAllowed, v1alpha1.ReasonNotObserved:
		c.event(d, corev1.EventTypeWarning, reason, ready.Message)
	}
	if ready.Status == metav1.ConditionTrue {
		c.mu.Lock()
		if r := c.runs[d.Name]; r != nil {
			rolloutSeconds.Observe(time.Since(r.began).Seconds())
		}
		c.mu.Unlock()
	}
}

// tellObstacles tells the owners of objects that have come into the way, once.
func (c *Controller) tellObstacles(d *distribute.Distribution, was *v1alpha1.ResourceDistributionStatus, results []distribute.Result) {
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
		c.Events.Event(object, corev1.EventTypeWarning, string(v1alpha1.ReasonDistributionConflict), distribute.EventText(d))
	}
}
