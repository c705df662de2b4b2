package labelling

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/text"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// mostRefusal is how many bytes of the API server's error an Event repeats.
const mostRefusal = 256

// Reconcile applies or removes the label of one object, if the label is not as the object's generator asks for.
func (l *Labeller) Reconcile(ctx context.Context, slot copies.Slot) (ctrl.Result, error) {
	object, wanted, served := l.tables.findObject(slot)
	switch {
	case object == nil || served.Resource.Resource == "":
		return ctrl.Result{}, nil
	case !copies.IsMode(wanted):
		l.sendWarning(slot, object, served, v1alpha1.ReasonInvalidSource,
			"annotation "+v1alpha1.AnnotationPropagateGenerated+" of its controller is "+
				strconv.Quote(text.Cut(wanted, 64))+", and must be create, update or none: its label stays as it is until that is corrected")
		return ctrl.Result{}, nil
	case !l.isManaged(slot.Namespace) || !object.PlanLabel(wanted):
		return ctrl.Result{}, nil
	}
	repair := wanted != "" && !object.Labelled && l.tables.wasApplied(slot, object.UID)
	if wait := l.repairs.Wait(slot, time.Now(), l.Timing.LoopWindow); repair && wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	answer, err := l.applyRequest(ctx, slot, object.UID, wanted, served)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return ctrl.Result{}, nil // somebody else has labelled the object, or made it anew: a watch event queues it then
	case err != nil:
		// Once in a row of failures, and not where the API server is only busy.
		if l.backoff.NumRequeues(slot) == 0 && apianswer.AskedDelay(err) == 0 {
			l.sendWarning(slot, object, served, v1alpha1.ReasonMetadataRejected,
				"label "+v1alpha1.LabelPropagate+" can't be written: "+text.Cut(err.Error(), mostRefusal))
		}
		return ctrl.Result{}, fmt.Errorf("labelling %s, which is generated: %w", slot, err)
	}
	l.slots.Add(l.tables.recordApplied(slot, answer)...)
	if repair && l.repairs.Note(slot, time.Now(), l.Timing.LoopWindow) {
		l.sendWarning(slot, object, served, v1alpha1.ReasonDriftLoop, "another client keeps removing label "+v1alpha1.LabelPropagate+
			": from now on the operator restores it only once in ten minutes. Stop that client, or remove annotation "+
			v1alpha1.AnnotationPropagateGenerated+" from the controller of this object")
	}
	return ctrl.Result{}, nil
}

// isManaged reports whether namespace is a root, a sub-namespace or a template, where labelled objects are sources, and
// is not terminating.
func (l *Labeller) isManaged(namespace string) bool {
	f := l.View.Snapshot()
	n := f.Namespace(namespace)
	kind := f.KindOf(n)
	return (kind == forest.Root || kind == forest.SubNamespace || kind == forest.Template) && !n.Terminating
}

// applyRequest sends a server-side apply of the label alone. For mode "" it applies no label, which takes off only a
// label that the operator has applied before. The UID keeps the request from making a deleted object anew. Without
// force, a label that somebody else has set in the meantime is a conflict.
func (l *Labeller) applyRequest(ctx context.Context, slot copies.Slot, uid types.UID, mode string,
	served watchset.Status) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timing.Write)
	defer cancel()
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(served.Kind)
	object.Namespace, object.Name, object.UID = slot.Namespace, slot.Name, uid
	if mode != "" {
		object.Labels = map[string]string{v1alpha1.LabelPropagate: mode}
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing the label of %s: %w", slot, err)
	}
	return l.client.Resource(served.Resource).Namespace(slot.Namespace).
		Patch(ctx, slot.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: copies.GeneratedManager})
}

// sendWarning sends a Warning on the object.
func (l *Labeller) sendWarning(slot copies.Slot, object *copies.Generated, served watchset.Status, reason v1alpha1.Reason, message string) {
	on := &metav1.PartialObjectMetadata{}
	on.SetGroupVersionKind(served.Kind)
	on.Namespace, on.Name, on.UID = slot.Namespace, slot.Name, object.UID
	l.Events.Event(on, corev1.EventTypeWarning, string(reason), message)
}
