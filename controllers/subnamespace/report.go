package subnamespace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// reportVerdict writes the status if it changed, and sends an Event if the SubNamespace is stalled for a new reason.
func (r *Reconciler) reportVerdict(ctx context.Context, sub *v1alpha1.SubNamespace, v verdict) error {
	before := sub.DeepCopy()
	if rejected := r.Rejected(sub.Name); v.isReady() && rejected != "" {
		v = verdict{reason: v1alpha1.ReasonMetadataRejected, message: rejected, stalled: true}
	}
	status := &sub.Status
	v1alpha1.KeepConditions(&status.Conditions, v1alpha1.ConditionReady, v1alpha1.ConditionStalled, v1alpha1.ConditionMetadataSynced)
	status.ObservedGeneration = sub.Generation
	was := v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionReady)
	ready := metav1.ConditionFalse
	if v.isReady() {
		ready = metav1.ConditionTrue
	}
	v1alpha1.SetCondition(&status.Conditions, sub.Generation, v1alpha1.ConditionReady, ready, v.reason, v.message)
	if v.stalled {
		v1alpha1.SetCondition(&status.Conditions, sub.Generation, v1alpha1.ConditionStalled, metav1.ConditionTrue, v.reason, v.message)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, string(v1alpha1.ConditionStalled))
	}
	r.reportMetadata(sub, v)
	if equality.Semantic.DeepEqual(before.Status, sub.Status) {
		return nil
	}
	if v.stalled && (was == nil || before.Status.ObservedGeneration < 0 || was.Reason != string(v.reason)) && !r.isMoving(ctx, sub) {
		r.Events.Event(sub, corev1.EventTypeWarning, string(v.reason), v.message)
	}
	err := r.Client.Status().Patch(ctx, sub, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(v1alpha1.OperatorName))
	if err != nil {
		return fmt.Errorf("writing the status of SubNamespace %s/%s: %w", sub.Namespace, sub.Name, err)
	}
	return nil
}

// isMoving reports whether kubectl warren move is taking the namespace to this SubNamespace or away from it. The next
// step of the command ends the obstacle, so that no human needs an Event.
func (r *Reconciler) isMoving(ctx context.Context, sub *v1alpha1.SubNamespace) bool {
	n := r.View.Snapshot().Namespace(sub.Name)
	if n == nil || n.Parent() == "" {
		return false
	}
	if n.Parent() == sub.Annotations[v1alpha1.AnnotationMovedFrom] {
		return true
	}
	owner := &v1alpha1.SubNamespace{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: n.Parent(), Name: sub.Name}, owner)
	return err == nil && owner.Annotations[v1alpha1.AnnotationMovedFrom] == sub.Namespace
}

// reportMetadata sets condition MetadataSynced: whether the namespace carries the keys that the spec and the ancestors
// give it.
func (r *Reconciler) reportMetadata(sub *v1alpha1.SubNamespace, v verdict) {
	s := r.View.Snapshot()
	set := func(status metav1.ConditionStatus, reason v1alpha1.Reason, message string) {
		was := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionMetadataSynced)
		if reason != v1alpha1.ReasonSynced && status == metav1.ConditionFalse && (was == nil || was.Reason != string(reason) ||
			was.Message != message) {
			r.Events.Event(sub, corev1.EventTypeWarning, string(reason), message)
		}
		v1alpha1.SetCondition(&sub.Status.Conditions, sub.Generation, v1alpha1.ConditionMetadataSynced, status, reason, message)
	}
	place := s.Place(sub.Name)
	switch refused := forest.RefusedKeys(s, sub.Name); {
	case place.Halted() && s.Namespace(sub.Name).BoundTo(sub.Namespace):
		set(metav1.ConditionUnknown, v1alpha1.ReasonHalted, place.Halt.Message)
	case v.reason == v1alpha1.ReasonMetadataRejected:
		set(metav1.ConditionFalse, v1alpha1.ReasonMetadataRejected, v.message)
	case !v.isReady():
		meta.RemoveStatusCondition(&sub.Status.Conditions, string(v1alpha1.ConditionMetadataSynced))
	case len(refused) > 0:
		set(metav1.ConditionFalse, v1alpha1.ReasonKeyNotAllowed, forest.NotTransferred+forest.Few(refused))
	default:
		set(metav1.ConditionTrue, v1alpha1.ReasonSynced,
			"the namespace carries the labels and annotations that this SubNamespace and its ancestors give it")
	}
}

// announceCreated sends an Event if the namespace existed before and had been deleted. The first creation needs none:
// condition Ready reports it.
func (r *Reconciler) announceCreated(sub *v1alpha1.SubNamespace) {
	if synced := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionMetadataSynced); synced != nil || wasActive(sub) {
		r.Events.Event(sub, corev1.EventTypeWarning, string(v1alpha1.ReasonNamespaceRecreated),
			"namespace "+sub.Name+" had been deleted and was created again, without the objects that it held")
	}
}

// wasActive reports whether the last report was about a namespace that existed.
func wasActive(sub *v1alpha1.SubNamespace) bool {
	ready := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && (ready.Status == metav1.ConditionTrue || ready.Reason == string(v1alpha1.ReasonNamespaceTerminating) ||
		ready.Reason == string(v1alpha1.ReasonMetadataRejected))
}

// announceEnd sends an Event that describes what became of the namespace of a deleted SubNamespace. It sends none where
// the parent is terminating: the API server takes no Events there.
func (r *Reconciler) announceEnd(sub *v1alpha1.SubNamespace, reason v1alpha1.Reason, message string) {
	if message == "" {
		return
	}
	if p := r.View.Snapshot().Namespace(sub.Namespace); p == nil || p.Terminating {
		return
	}
	eventType := corev1.EventTypeNormal
	if reason == v1alpha1.ReasonDeletionRefused {
		eventType = corev1.EventTypeWarning
	}
	r.Events.Event(sub, eventType, string(reason), message)
}
