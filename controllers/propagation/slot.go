package propagation

import (
	"context"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// fill brings one slot to what it should be, with one request.
func (e *Engine) fill(ctx context.Context, slot propagate.Slot) {
	e.mu.Lock()
	action := e.world.Plan(slot)
	over := e.world.Copy(slot)
	if action.Reason == v1alpha1.ReasonWaitingForRemoval || e.barred(slot, action) {
		e.hold(slot.Namespace)
		action = propagate.Action{Reason: v1alpha1.ReasonWaitingForRemoval}
	}
	obstructed := e.troubles.of(slot).obstructed()
	held := time.Duration(0)
	if action.Verb == propagate.Update && isRepair(over, action) {
		held = e.repairs.wait(slot, time.Now(), e.Timing.LoopWindow)
	}
	e.mu.Unlock()
	if held > 0 {
		e.queue.AddAfter(slotKey(slot), held)
		return
	}

	resource, ok := e.resource(slot.Kind)
	if !ok {
		return
	}
	var err error
	switch action.Verb {
	case propagate.Nothing:
		if action.Reason == v1alpha1.ReasonConflict {
			e.answeredFor(slot)
			e.conflict(slot, action, false)
			return
		}
	case propagate.Look:
		e.enqueue(sourceOf(action.Source))
		return
	case propagate.Inspect:
		err = e.inspect(ctx, resource, slot, action, over)
	case propagate.Delete:
		err = e.removeAnswered(ctx, resource, slot, over)
	case propagate.Create:
		if obstructed {
			err = e.probe(ctx, resource, slot, action)
		} else {
			err = e.create(ctx, resource, slot, action)
		}
	case propagate.Update:
		err = e.update(ctx, resource, slot, action, over)
	}
	if err != nil {
		e.failed(slot, action, err)
		return
	}
	if action.Reason != v1alpha1.ReasonWaitingForRemoval {
		e.answeredFor(slot)
	}
	e.settled(slot, action)
	e.overtaken(slot, action)
}

// overtaken looks at a slot again if the forest or the source has changed while its request was under way: a copy that
// stood nowhere yet was in no list of what the change concerns.
func (e *Engine) overtaken(slot propagate.Slot, done propagate.Action) {
	if done.Verb == propagate.Nothing {
		return
	}
	e.mu.Lock()
	now := e.world.Plan(slot)
	e.mu.Unlock()
	if now.Verb == propagate.Delete || now.Verb != propagate.Nothing && (now.Source != done.Source || now.Hash != done.Hash) {
		e.enqueue(slotKey(slot))
	}
}

// render makes the request body. The content may have moved on since the plan: then the newer one is written.
func (e *Engine) render(ctx context.Context, slot propagate.Slot, action *propagate.Action, over *propagate.Copy) ([]byte, error) {
	b, err := e.bodyOf(ctx, action.Source, action.Hash.Content)
	if err != nil {
		return nil, err
	}
	action.Hash.Content = b.Content
	return b.JSON(slot, action.Source.Namespace, action.Hash, over)
}

func (e *Engine) create(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action) error {
	data, err := e.render(ctx, slot, &action, nil)
	if err != nil {
		return err
	}
	meta, err := e.writer.create(ctx, r, slot, data)
	count(slot, http.MethodPost, err)
	if apierrors.IsAlreadyExists(err) {
		return e.probe(ctx, r, slot, action)
	}
	if err == nil {
		e.answered(slot, meta)
	}
	return err
}

// probe looks at what stands where a copy should go: ours after all (an answer was lost, or the watch is behind, or
// somebody took the label off), or in the way.
func (e *Engine) probe(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action) error {
	meta, err := e.writer.metadata(ctx, r, slot.Namespace, slot.Name)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "copy").Inc()
	switch {
	case apierrors.IsNotFound(err):
		return e.create(ctx, r, slot, action)
	case err != nil:
		return err
	case meta.DeletionTimestamp != nil:
		return errBeingDeleted
	}
	hash := propagate.ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	from, labelled := meta.Labels[v1alpha1.LabelInheritedFrom]
	if !labelled {
		if hash.Place == "" || hash.Place != propagate.PlaceOf(slot, action.Source.Namespace) {
			return errObstacle
		}
		meta.Labels = map[string]string{v1alpha1.LabelInheritedFrom: action.Source.Namespace}
	} else if hash.Place != propagate.PlaceOf(slot, from) {
		return errObstacle
	}
	e.mu.Lock()
	c := e.settings.Rules.CopyOf(slot, meta)
	c.Drifted = !labelled // the PUT puts the label back
	if e.world.Copy(slot) == nil {
		e.world.PutCopy(slot, c)
	}
	e.mu.Unlock()
	e.enqueue(slotKey(slot))
	return nil
}

func (e *Engine) update(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action, over *propagate.Copy) error {
	data, err := e.render(ctx, slot, &action, over)
	if err != nil {
		return err
	}
	meta, err := e.writer.update(ctx, r, slot, data)
	count(slot, http.MethodPut, err)
	switch {
	case err == nil:
		e.answered(slot, meta)
		if isRepair(over, action) {
			e.repaired(slot, meta)
		}
		return nil
	case apierrors.IsNotFound(err):
		e.forget(slot, over)
		return nil
	case immutable(slot, err):
		return e.remove(ctx, r, slot, over) // made again when it is gone
	}
	return err
}

// barred says whether a write must wait because a DELETE in the namespace is not answered yet, although the watch may
// already have told that the copy is gone. The caller holds the lock.
func (e *Engine) barred(slot propagate.Slot, action propagate.Action) bool {
	return (action.Verb == propagate.Create || action.Verb == propagate.Update) && e.removing[slot.Namespace] > 0
}

// removeAnswered removes a copy and holds back what is to be written in the namespace until the answer is there.
func (e *Engine) removeAnswered(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, over *propagate.Copy) error {
	e.mu.Lock()
	e.removing[slot.Namespace]++
	e.mu.Unlock()
	err := e.remove(ctx, r, slot, over)
	var keys []key
	e.mu.Lock()
	if e.removing[slot.Namespace]--; e.removing[slot.Namespace] == 0 {
		delete(e.removing, slot.Namespace)
		if err == nil {
			keys = e.released(slot.Namespace)
		} else {
			keys = e.unbarred(slot.Namespace)
		}
	}
	e.mu.Unlock()
	e.enqueue(keys...)
	return err
}

// unbarred are the slots in namespace that need not wait for a removal that has failed, which is tried again by itself. The
// caller holds the lock.
func (e *Engine) unbarred(namespace string) []key {
	if e.waiting[namespace] == nil {
		return nil
	}
	var keys []key
	waits := false
	for _, slot := range e.world.SlotsIn(namespace) {
		switch action := e.world.Plan(slot); {
		case action.Reason == v1alpha1.ReasonWaitingForRemoval:
			waits = true
		case action.Verb == propagate.Create || action.Verb == propagate.Update:
			keys = append(keys, slotKey(slot))
		}
	}
	if !waits {
		e.waitsNoLonger(namespace)
	}
	return keys
}

func (e *Engine) remove(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, over *propagate.Copy) error {
	err := e.writer.delete(ctx, r, slot, over)
	count(slot, http.MethodDelete, err)
	if apierrors.IsNotFound(err) {
		e.forget(slot, over)
		return nil
	}
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if c := e.world.Copy(slot); c != nil && c.UID == over.UID {
			c.Terminating = true // the watch tells when it is gone
			e.world.PutCopy(slot, c)
		}
	}
	return err
}

// inspect reads a copy that may have been changed while nobody watched, and puts it right if it was.
func (e *Engine) inspect(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action, over *propagate.Copy) error {
	object, err := e.writer.object(ctx, r, slot)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "copy").Inc()
	if apierrors.IsNotFound(err) {
		e.forget(slot, over)
		return nil
	}
	if err != nil {
		return err
	}
	source, err := e.bodyOf(ctx, action.Source, action.Hash.Content)
	if err != nil {
		return err
	}
	e.mu.Lock()
	rules := e.settings.Rules
	e.mu.Unlock()
	found, err := propagate.Render(slot.At(action.Source.Namespace), object, rules)
	if err != nil {
		return err
	}
	if differs(source.Body, found, over.Foreign) {
		over.Drifted = true
		e.mu.Lock()
		e.found[slot] = foundAtStart
		e.mu.Unlock()
		return e.update(ctx, r, slot, action, over)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.world.Copy(slot); c != nil && c.UID == over.UID && c.ResourceVersion == over.ResourceVersion {
		c.Foreign, c.Meta = false, source.Meta
		e.world.PutCopy(slot, c)
	}
	return nil
}

// forget drops a copy that the API server says is not there.
func (e *Engine) forget(slot propagate.Slot, c *propagate.Copy) {
	e.mu.Lock()
	var keys []key
	if known := e.world.Copy(slot); known != nil && known.UID == c.UID {
		e.world.DeleteCopy(slot)
		keys = append(e.released(slot.Namespace), slotKey(slot))
	}
	e.mu.Unlock()
	e.enqueue(keys...)
}

// immutable says whether a PUT was refused because of a field that can't change, of which the spec allows to make the
// copy anew: the role of a RoleBinding, type and content of a Secret or ConfigMap.
func immutable(slot propagate.Slot, err error) bool {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // straight from the client
	if !ok || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return false
	}
	fields := map[string][]string{
		"RoleBinding": {"roleRef"},
		"Secret":      {"type", "data", "stringData", "immutable"},
		"ConfigMap":   {"data", "binaryData", "immutable"},
	}[slot.Kind.Kind]
	for _, cause := range status.Status().Details.Causes {
		for _, field := range fields {
			if cause.Field == field || strings.HasPrefix(cause.Field, field+".") {
				return true
			}
		}
	}
	return false
}

// gone says whether a write failed because the namespace is going or gone: nothing to report, nothing to retry.
func gone(slot propagate.Slot, err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // straight from the client
	return ok && apierrors.IsNotFound(err) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces" && status.Status().Details.Name == slot.Namespace
}
