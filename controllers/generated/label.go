package generated

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/text"
)

// mostRefusal is how many bytes of the API server's error an Event repeats.
const mostRefusal = 256

// work labels the objects that are queued, until the queue is shut down. One worker is enough: generated objects are few and change seldom.
func (r *round) work(ctx context.Context) {
	for {
		slot, down := r.queue.Get()
		if down {
			return
		}
		if ctx.Err() == nil {
			r.labelSlot(ctx, slot)
		}
		r.queue.Done(slot)
	}
}

// labelSlot applies or removes the label of one object, if the label is not as the object's generator asks for.
func (r *round) labelSlot(ctx context.Context, slot propagate.Slot) {
	object, wanted, mapping := r.tables.look(slot)
	if object != nil && mapping != nil && !propagate.IsMode(wanted) {
		r.queue.Forget(slot)
		r.tell(slot, object, mapping, v1alpha1.ReasonInvalidSource, "annotation "+v1alpha1.AnnotationPropagateGenerated+" of its controller is "+
			strconv.Quote(text.Cut(wanted, 64))+", and must be create, update or none: its label stays as it is until that is corrected")
		return
	}
	if object == nil || mapping == nil || !r.isManaged(slot.Namespace) || !object.PlanLabel(wanted) {
		r.queue.Forget(slot)
		return
	}
	repair := wanted != "" && !object.Labelled && r.tables.wasApplied(slot, object.UID)
	if wait := r.repairs.Wait(slot, time.Now(), r.Timing.LoopWindow); repair && wait > 0 {
		r.queue.AddAfter(slot, wait)
		return
	}
	answer, err := r.apply(ctx, slot, object.UID, wanted, mapping)
	switch {
	case err == nil:
		r.queue.Forget(slot)
		r.tables.noteApplied(slot, answer)
		if repair && r.repairs.Note(slot, time.Now(), r.Timing.LoopWindow) {
			r.tell(slot, object, mapping, v1alpha1.ReasonDriftLoop, "somebody takes label "+v1alpha1.LabelPropagate+
				" off again and again: it is put back once in ten minutes; take annotation "+v1alpha1.AnnotationPropagateGenerated+" off its controller, or have whoever does this leave the label")
		}
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		r.queue.Forget(slot) // somebody else has labelled the object, or made it anew: a watch event queues it then
	default:
		ctrl.Log.WithName("generated").Error(err, "labelling what is generated", "object", slot.String())
		if r.queue.NumRequeues(slot) == 0 {
			r.tell(slot, object, mapping, v1alpha1.ReasonMetadataRejected, "label "+v1alpha1.LabelPropagate+" can't be written: "+text.Cut(err.Error(), mostRefusal))
		}
		r.queue.AddRateLimited(slot)
	}
}

// isManaged says whether namespace is a root, a sub-namespace or a template, where labelled objects are sources.
func (r *round) isManaged(namespace string) bool {
	f := r.View.Snapshot()
	n := f.Namespace(namespace)
	kind := f.KindOf(n)
	return (kind == forest.Root || kind == forest.SubNamespace || kind == forest.Template) && !n.Terminating
}

// apply sends a server-side apply of the label alone or, for mode "", of no label, which takes off only a label that the operator has applied
// before. The UID keeps the request from making a deleted object anew; without force, a label that somebody else has set meanwhile is a
// conflict.
func (r *round) apply(ctx context.Context, slot propagate.Slot, uid types.UID, mode string, mapping *meta.RESTMapping) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Timing.Write)
	defer cancel()
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	object.Namespace, object.Name, object.UID = slot.Namespace, slot.Name, uid
	if mode != "" {
		object.Labels = map[string]string{v1alpha1.LabelPropagate: mode}
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing the label of %s: %w", slot, err)
	}
	return r.client.Resource(mapping.Resource).Namespace(slot.Namespace).
		Patch(ctx, slot.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: propagate.GeneratedManager})
}

// tell sends a Warning on the object.
func (r *round) tell(slot propagate.Slot, object *propagate.Generated, mapping *meta.RESTMapping, reason v1alpha1.Reason, message string) {
	on := &metav1.PartialObjectMetadata{}
	on.SetGroupVersionKind(mapping.GroupVersionKind)
	on.Namespace, on.Name, on.UID = slot.Namespace, slot.Name, object.UID
	r.Events.Event(on, corev1.EventTypeWarning, string(reason), message)
}
