package distribution

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// copier writes one copy at a time, by requests that fail if the object has changed since the plan (UID and resourceVersion), and
// updates the tables by their answers.
type copier struct {
	runs    *runs
	copies  *copyTable
	queue   *queue
	writer  *copying.Writer
	lookout *lookout
}

// carryOut sends the requests for w's action. errStale means that the object has changed since the plan.
func (c *copier) carryOut(ctx context.Context, w work) error {
	switch w.action.Verb {
	case distribute.Create:
		return c.create(ctx, w)
	case distribute.Update:
		return c.update(ctx, w)
	case distribute.Remark:
		return c.rewrite(ctx, w, func(meta *metav1.ObjectMeta) { w.distribution.Remark(meta, w.copy) })
	case distribute.Inspect:
		return c.inspect(ctx, w)
	case distribute.Examine:
		return c.examine(ctx, w)
	case distribute.Adopt:
		return c.rewrite(ctx, w, func(meta *metav1.ObjectMeta) { w.distribution.Adopt(meta) })
	case distribute.Overwrite:
		return c.overwrite(ctx, w)
	case distribute.Delete:
		return c.remove(ctx, w)
	case distribute.HandBack:
		return c.rewrite(ctx, w, distribute.HandBackMeta)
	case distribute.Unlock:
		return c.rewrite(ctx, w, distribute.UnlockMeta)
	}
	return nil
}

// remove deletes a copy if its UID and resourceVersion are still those of the plan.
func (c *copier) remove(ctx context.Context, w work) error {
	err := c.writer.Delete(ctx, w.resource, w.slot, w.copy.UID, w.copy.ResourceVersion)
	count("delete", err)
	if apierrors.IsNotFound(err) {
		c.drop(w)
		return nil
	}
	if err == nil {
		c.copies.noteDeleted(w.slot, w.copy.UID)
	}
	return err
}

func (c *copier) create(ctx context.Context, w work) error {
	body, err := w.distribution.Template.Marked(w.slot, w.distribution.Marks(w.slot.Namespace, false), nil)
	if err != nil {
		return err
	}
	meta, err := c.writer.Create(ctx, w.resource, w.slot, body)
	count("create", err)
	if apierrors.IsAlreadyExists(err) {
		return c.probe(ctx, w)
	}
	if err == nil {
		c.noteAnswer(w, meta)
	}
	return err
}

// probe reads the object that a create found in its slot. It may be the copy after all, because an answer was lost or the watch
// lags behind; otherwise it is an obstacle.
func (c *copier) probe(ctx context.Context, w work) error {
	meta, err := c.writer.Metadata(ctx, w.resource, w.slot.Namespace, w.slot.Name)
	if apierrors.IsNotFound(err) {
		c.queue.add(w.key())
		return nil
	}
	if err != nil {
		return err
	}
	if o := c.lookout.read(w.slot.Kind, meta); o == nil {
		c.queue.add(c.copies.noteProbed(w.slot, meta)...)
	} else if watch := w.run.noteObstacle(w.slot.Namespace, o); watch != nil {
		c.lookout.begin(w.run, w.distribution, w.resource, watch)
	}
	return nil
}

func (c *copier) update(ctx context.Context, w work) error {
	marks := w.distribution.Marks(w.slot.Namespace, w.copy.Adopted)
	body, err := w.distribution.Template.Marked(w.slot, marks, w.copy.Over(w.distribution.Template))
	if err != nil {
		return err
	}
	return c.put(ctx, w, body)
}

// put sends a PUT and updates the tables by its answer.
func (c *copier) put(ctx context.Context, w work, body []byte) error {
	meta, err := c.writer.Update(ctx, w.resource, w.slot, body)
	count("update", err)
	switch {
	case err == nil && meta.Labels[v1alpha1.LabelDistributedBy] == "": // handed back
		c.drop(w)
	case err == nil:
		c.noteAnswer(w, meta)
	case apierrors.IsNotFound(err):
		c.drop(w)
		return nil
	}
	return err
}

// rewrite reads an object, changes only its metadata, and PUTs it.
func (c *copier) rewrite(ctx context.Context, w work, change func(*metav1.ObjectMeta)) error {
	object, err := c.readPlanned(ctx, w)
	if err != nil || object == nil {
		return err
	}
	if err := distribute.ChangeMeta(object, change); err != nil {
		return err
	}
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return c.put(ctx, w, body)
}

// readPlanned reads the object that w was planned for; nil if the object is gone, errStale if it has changed since the plan.
func (c *copier) readPlanned(ctx context.Context, w work) (map[string]any, error) {
	object, err := c.writer.Object(ctx, w.resource, w.slot)
	switch {
	case apierrors.IsNotFound(err):
		c.drop(w)
		return nil, nil
	case err != nil:
		return nil, err
	case resourceVersion(object) != w.seenVersion():
		return nil, errStale
	}
	return object, nil
}

// inspect reads a copy that may have been changed while the operator didn't watch, notes whether it was, and queues the target,
// whose next plan restores the copy.
func (c *copier) inspect(ctx context.Context, w work) error {
	object, err := c.readPlanned(ctx, w)
	if err != nil || object == nil {
		return err
	}
	holds := w.distribution.Template.Holds(object, w.copy.Foreign) && w.distribution.MetaHolds(object)
	c.copies.noteInspected(w.slot, w.copy.UID, w.copy.ResourceVersion, holds)
	c.queue.add(w.key())
	return nil
}

// examine reads an obstacle, and notes whether it is identical to the template.
func (c *copier) examine(ctx context.Context, w work) error {
	object, err := c.readPlanned(ctx, w)
	if err != nil || object == nil {
		return err
	}
	identical := w.distribution.Template.Identical(object)
	w.run.changeObstacle(w.slot.Namespace, func(known *distribute.Obstacle) *distribute.Obstacle {
		if known == nil || known.ResourceVersion != w.seenVersion() {
			return known
		}
		examined := *known
		if examined.Examined, examined.Identical = true, identical; !identical {
			examined.Reason = v1alpha1.ReasonNotIdentical
		}
		return &examined
	})
	return nil
}

// overwrite replaces an obstacle's content by the template. The object keeps its own labels, annotations and ownerReferences.
func (c *copier) overwrite(ctx context.Context, w work) error {
	meta, err := c.writer.Metadata(ctx, w.resource, w.slot.Namespace, w.slot.Name)
	if apierrors.IsNotFound(err) {
		c.drop(w)
		return nil
	}
	if err != nil {
		return err
	}
	if meta.ResourceVersion != w.action.Conflict.ResourceVersion {
		return errStale
	}
	template := w.distribution.Template
	body, err := template.Marked(w.slot, w.distribution.Marks(w.slot.Namespace, true), distribute.OverStranger(meta, template))
	if err != nil {
		return err
	}
	return c.put(ctx, w, body)
}

// drop removes w's copy and obstacle from the tables, after the API server has said that the object is gone, or is not a copy any more.
func (c *copier) drop(w work) {
	var keys []key
	if w.copy != nil {
		keys = c.copies.noteAbsent(w.slot, w.copy.UID)
	}
	if w.run != nil {
		w.run.changeObstacle(w.slot.Namespace, forgetObstacle)
	}
	c.queue.add(keys...)
}

// noteAnswer puts the answer to a write into the tables. The object in the slot is a copy now, so no run has an obstacle there. Under
// driftPolicy Revert the target is queued to be read whole, because a mutating admission may have changed what was written, in the
// operator's name.
func (c *copier) noteAnswer(w work, meta *metav1.PartialObjectMetadata) {
	revert := w.distribution != nil && w.distribution.Drift == v1alpha1.DriftRevert
	for _, name := range c.copies.noteAnswer(w.slot, meta, !revert) {
		if r := c.runs.find(name); r != nil {
			r.changeObstacle(w.slot.Namespace, forgetObstacle)
		}
	}
	if revert {
		c.queue.add(w.key())
	}
}
