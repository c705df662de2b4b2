package propagation

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// copies bring one slot at a time to what it should be: ask for the plan, wait if other copies must be deleted or written first, write.
type copies struct {
	settings *Settings
	timing   Timing
	tables   *tables
	facts    facts
	kinds    *kinds
	queue    *queue
	sources  *sources
	writer   *copying.Writer
	removals *removals
	above    *above
	rails    *rails
	limits   *limits
	repairs  *repairs
	troubles *troubles
	notices  *notices
	measure  *measure
}

// writeSlot brings one slot to what it should be, with one request, and says whether that was in vain.
func (c *copies) writeSlot(ctx context.Context, slot propagate.Slot) (inVain bool) {
	action, over := c.tables.planWithCopy(slot)
	if c.removals.holdBack(slot, action) {
		action = propagate.Action{Reason: v1alpha1.ReasonWaitingForRemoval}
	}
	if c.rails.holdBack(slot, action) || c.limits.holdBack(slot, action) {
		return false
	}
	if action.Verb == propagate.Update && isRepair(over, action) {
		if wait := c.repairs.Wait(slot, time.Now(), c.timing.LoopWindow); wait > 0 {
			c.queue.AddAfter(slotKey(slot), wait)
			return false
		}
	}
	mapping := c.kinds.mappingOf(slot.Kind)
	switch {
	case mapping == nil:
		return false
	case action.Verb == propagate.Look:
		c.queue.Add(sourceKey(action.Source))
		return false
	case action.Reason == v1alpha1.ReasonLimitExceeded:
		c.limits.noteHeld(action.Source)
		c.measure.endSlot(slot)
		c.clearTrouble(slot, action)
		return false
	case action.Reason == v1alpha1.ReasonConflict:
		c.measure.endSlot(slot)
		c.noteConflict(slot, action, false)
		return false
	}
	if err := c.carryOut(ctx, mapping.Resource, slot, action, over); errors.Is(err, errBehind) {
		c.queue.AddAfter(slotKey(slot), behindRetry)
		return false
	} else if err != nil {
		c.handleFailure(slot, action, err)
		return true
	}
	if !waitsForRemoval(action) {
		c.measure.endSlot(slot)
	}
	c.clearTrouble(slot, action)
	c.limits.noteWritten(slot)
	c.requeueBindings(slot)
	c.requeueIfOvertaken(slot, action)
	return false
}

func (c *copies) carryOut(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action, over *propagate.Copy) error {
	switch action.Verb {
	case propagate.Inspect:
		return c.inspectCopy(ctx, r, slot, action, over)
	case propagate.Withdraw:
		return c.withdrawFromCopy(ctx, r, slot, action, over)
	case propagate.Delete:
		if err := c.above.confirm(ctx, slot, action.Source.Namespace, over.ResourceVersion); err != nil {
			return err
		}
		if c.facts.plan(slot).Verb != propagate.Delete {
			return errBehind // since the plan, another worker's read of the namespaces above has brought what the watch will bring later
		}
		return c.removals.during(slot.Namespace, func() error { return c.deleteCopy(ctx, r, slot, over) })
	case propagate.Create:
		if c.troubles.of(slot).blocked() { // a GET of metadata, rather than a POST that is refused again
			return c.probeObstacle(ctx, r, slot, action)
		}
		return c.createCopy(ctx, r, slot, action)
	case propagate.Update:
		return c.updateCopy(ctx, r, slot, action, over)
	}
	return nil
}

// requeueIfOvertaken queues a slot again if the forest or the source has changed while the slot's request was under way: such a change could
// not queue the slot of a copy that didn't exist yet.
func (c *copies) requeueIfOvertaken(slot propagate.Slot, done propagate.Action) {
	if done.Verb == propagate.Nothing {
		return
	}
	now := c.facts.plan(slot)
	if now.Verb == propagate.Delete || now.Verb != propagate.Nothing && (now.Source != done.Source || now.Hash != done.Hash) {
		c.queue.Add(slotKey(slot))
	}
}

// renderBody returns the request body for a copy. If the source has changed since the plan, the body has the newer content, and renderBody
// sets action.Hash to match.
func (c *copies) renderBody(ctx context.Context, slot propagate.Slot, action *propagate.Action, over *propagate.Copy) ([]byte, error) {
	b, err := c.sources.bodyOf(ctx, action.Source, action.Hash.Content)
	if err != nil {
		return nil, err
	}
	if err := c.checkRole(ctx, slot, action.Source, action.Hash.Mode, b); err != nil {
		return nil, err
	}
	action.Hash.Content = b.Content
	return b.JSON(slot, action.Source.Namespace, action.Hash, over)
}

func (c *copies) createCopy(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action) error {
	data, err := c.renderBody(ctx, slot, &action, nil)
	if err != nil {
		return err
	}
	meta, err := c.writer.Create(ctx, r, slot, data)
	count(slot, http.MethodPost, err)
	if apierrors.IsAlreadyExists(err) {
		return c.probeObstacle(ctx, r, slot, action)
	}
	if err == nil {
		c.tables.noteAnswer(slot, meta)
	}
	return err
}

// probeObstacle reads what stands where a copy should go. The object may be the operator's own copy after all, because an answer was lost,
// the watch is behind, or somebody took the label off; then the tables take the copy in, and the slot is queued again. For somebody else's
// object probeObstacle returns errObstacle, for one that is being deleted errBeingDeleted.
func (c *copies) probeObstacle(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action) error {
	meta, err := c.writer.Metadata(ctx, r, slot.Namespace, slot.Name)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "copy").Inc()
	switch {
	case apierrors.IsNotFound(err):
		return c.createCopy(ctx, r, slot, action)
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
	c.tables.noteFound(slot, meta, !labelled)
	c.queue.Add(slotKey(slot))
	return nil
}

func (c *copies) updateCopy(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action, over *propagate.Copy) error {
	data, err := c.renderBody(ctx, slot, &action, over)
	if other := (otherRoleError{}); errors.As(err, &other) {
		return errors.Join(err, c.deleteCopy(ctx, r, slot, over)) // the copy must not go on binding to the other Role that stands there now
	}
	if err != nil {
		return err
	}
	meta, err := c.writer.Update(ctx, r, slot, data)
	count(slot, http.MethodPut, err)
	switch {
	case err == nil:
		c.tables.noteAnswer(slot, meta)
		if isRepair(over, action) {
			c.reportRepair(slot, meta)
		}
		return nil
	case apierrors.IsNotFound(err):
		c.forgetCopy(slot, over)
		return nil
	case isImmutable(slot, err):
		return c.deleteCopy(ctx, r, slot, over) // the copy is made again when the old one is gone
	}
	return err
}

func (c *copies) deleteCopy(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, over *propagate.Copy) error {
	err := c.writer.Delete(ctx, r, slot, over.UID, over.ResourceVersion)
	count(slot, http.MethodDelete, err)
	if apierrors.IsNotFound(err) {
		c.forgetCopy(slot, over)
		return nil
	}
	if err == nil {
		c.tables.noteDeleted(slot, over.UID)
	}
	return err
}

// readCopyAndSource reads a copy from the API server, and its source. A copy that is gone is forgotten, and comes back as nil.
func (c *copies) readCopyAndSource(
	ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action, over *propagate.Copy,
) (map[string]any, body, error) {
	object, err := c.writer.Object(ctx, r, slot)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "copy").Inc()
	if apierrors.IsNotFound(err) {
		c.forgetCopy(slot, over)
		return nil, body{}, nil
	}
	if err != nil {
		return nil, body{}, err
	}
	source, err := c.sources.bodyOf(ctx, action.Source, action.Hash.Content)
	return object, source, err
}

// inspectCopy reads a copy that may have been changed while nobody watched, and puts it right if it was.
func (c *copies) inspectCopy(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action, over *propagate.Copy) error {
	object, source, err := c.readCopyAndSource(ctx, r, slot, action, over)
	if err != nil || object == nil {
		return err
	}
	rules := c.facts.rules()
	found, err := propagate.Render(slot.At(action.Source.Namespace), object, rules)
	if err != nil {
		return err
	}
	if source.Differs(found, over.Foreign) {
		over.Drifted = true
		c.repairs.noteFound(slot, foundAtStart)
		return c.updateCopy(ctx, r, slot, action, over)
	}
	c.tables.noteCompared(slot, over.UID, over.ResourceVersion, source)
	return nil
}

// withdrawFromCopy takes away from an access copy what its source no longer gives, in a namespace that is halted or protected, where the
// operator adds nothing. The watch may be behind, so the copy is read from the API server, and the PUT is guarded by the resourceVersion of
// that read.
func (c *copies) withdrawFromCopy(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, action propagate.Action, over *propagate.Copy) error {
	object, source, err := c.readCopyAndSource(ctx, r, slot, action, over)
	if err != nil || object == nil {
		return err
	}
	withdrawal, err := source.Withdraw(slot, object)
	switch {
	case err != nil:
		return err
	case withdrawal.Remove:
		return c.deleteCopy(ctx, r, slot, over)
	case withdrawal.Body == nil:
		c.tables.noteCompared(slot, over.UID, over.ResourceVersion, source)
		return nil
	}
	meta, err := c.writer.Update(ctx, r, slot, withdrawal.Body)
	count(slot, http.MethodPut, err)
	if err != nil {
		return err
	}
	c.tables.noteAnswer(slot, meta)
	c.tables.noteCompared(slot, string(meta.UID), meta.ResourceVersion, source)
	return nil
}

// forgetCopy drops a copy that the API server says is not there.
func (c *copies) forgetCopy(slot propagate.Slot, over *propagate.Copy) {
	gone := c.tables.noteAbsent(slot, over.UID)
	c.removals.release(gone.freed...)
	c.queue.Add(gone.keys...)
}
