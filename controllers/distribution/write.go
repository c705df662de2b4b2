package distribution

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// work is one target with what its write needs.
type work struct {
	*run
	distribution *distribute.Distribution // as it was when this was planned
	slot         propagate.Slot
	resource     schema.GroupVersionResource
	action       distribute.Action
	copy         *distribute.Copy
}

// writeTarget brings one namespace to what it should be, with one guarded write.
func (c *Controller) writeTarget(ctx context.Context, k key) {
	c.mu.Lock()
	r := c.runs[k.distribution]
	if r == nil {
		c.mu.Unlock()
		c.sayFarewell(ctx, k)
		return
	}
	if delete(r.open, k.namespace); len(r.open) == 0 {
		r.open = map[string]bool{} // one that has been large keeps its room
	}
	w, ok := c.planWork(r, k.namespace)
	c.mu.Unlock()
	if ok {
		c.finish(w, c.carryOut(ctx, w))
	}
	c.reviewSoon(r)
}

// planWork plans one namespace; ok is false where nothing is to be written now. The caller holds the lock.
func (c *Controller) planWork(r *run, namespace string) (w work, ok bool) {
	if !r.Distributes() || !c.synced {
		return w, false
	}
	kind := c.kinds[r.Template.Kind.GroupKind()]
	if kind == nil || kind.state != kindActive {
		return w, false
	}
	if r.judged != r.Distribution || r.unreported {
		return w, false // the review comes first, and has this written
	}
	w = work{
		run: r, distribution: r.Distribution, slot: r.Template.Slot(namespace), resource: kind.resource,
		action: c.planFor(r, c.Index.Snapshot(), namespace),
	}
	w.copy = c.copies.At(w.slot)
	if w.action.Verb == distribute.Nothing {
		delete(r.troubles, namespace)
		return w, false
	}
	if t := r.troubles[namespace]; t != nil && time.Now().Before(t.until) {
		return w, false // it comes again by itself
	}
	if w.isRepair() {
		if wait := c.repairs.Wait(w.slot, time.Now(), c.Timing.LoopWindow); wait > 0 {
			c.queue.AddAfter(key{r.Name, namespace}, wait)
			return w, false
		}
	}
	return w, true
}

func (c *Controller) carryOut(ctx context.Context, w work) error {
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

// remove deletes a copy if it is still the one that was seen.
func (c *Controller) remove(ctx context.Context, w work) error {
	err := c.writer.Delete(ctx, w.resource, w.slot, w.copy.UID, w.copy.ResourceVersion)
	count("delete", err)
	if apierrors.IsNotFound(err) {
		c.drop(w)
		return nil
	}
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if known := c.copies.At(w.slot); known != nil && known.UID == w.copy.UID {
			known.Terminating = true // the watch tells when it is gone
			c.copies.Put(w.slot, known)
		}
	}
	return err
}

func (c *Controller) create(ctx context.Context, w work) error {
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
		c.answered(w.slot, meta)
	}
	return err
}

// probe looks at what stands where a copy was to be made: ours after all, since an answer was lost or the watch is behind,
// or in the way.
func (c *Controller) probe(ctx context.Context, w work) error {
	meta, err := c.writer.Metadata(ctx, w.resource, w.slot.Namespace, w.slot.Name)
	if apierrors.IsNotFound(err) {
		c.enqueue(key{w.Name, w.slot.Namespace})
		return nil
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	var keys []key
	if o := c.readObstacle(w.distribution, meta); o != nil {
		w.obstacles[w.slot.Namespace] = o
		c.watchObstacles(w.run, w.resource)
	} else if c.copies.At(w.slot) == nil {
		keys = c.setCopy(w.slot, c.reader.Copy(w.slot, meta))
	}
	c.mu.Unlock()
	c.enqueue(keys...)
	return nil
}

func (c *Controller) update(ctx context.Context, w work) error {
	marks := w.distribution.Marks(w.slot.Namespace, w.copy.Adopted)
	body, err := w.distribution.Template.Marked(w.slot, marks, w.copy.Over(w.distribution.Template))
	if err != nil {
		return err
	}
	return c.put(ctx, w, body)
}

// put sends a PUT and takes its answer into the tables.
func (c *Controller) put(ctx context.Context, w work, body []byte) error {
	meta, err := c.writer.Update(ctx, w.resource, w.slot, body)
	count("update", err)
	switch {
	case err == nil && meta.Labels[v1alpha1.LabelDistributedBy] == "": // handed back
		c.drop(w)
	case err == nil:
		c.answered(w.slot, meta)
	case apierrors.IsNotFound(err):
		c.drop(w)
		return nil
	}
	return err
}

// rewrite changes the metadata of an object and nothing else: one read, and one PUT of what was read.
func (c *Controller) rewrite(ctx context.Context, w work, change func(*metav1.ObjectMeta)) error {
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

// readPlanned reads the object that was planned for; nil where it has gone. One that has changed since is errStale.
func (c *Controller) readPlanned(ctx context.Context, w work) (map[string]any, error) {
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

// seenVersion is the resourceVersion that was planned for.
func (w work) seenVersion() string {
	if w.copy != nil {
		return w.copy.ResourceVersion
	}
	return w.action.Conflict.ResourceVersion
}

func resourceVersion(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	text, _ := meta["resourceVersion"].(string)
	return text
}

// inspect reads a copy that may have been changed while nobody watched, and puts it right if it was.
func (c *Controller) inspect(ctx context.Context, w work) error {
	object, err := c.readPlanned(ctx, w)
	if err != nil || object == nil {
		return err
	}
	holds := w.distribution.Template.Holds(object, w.copy.Foreign) && w.distribution.MetaHolds(object)
	c.mu.Lock()
	if known := c.copies.At(w.slot); known != nil && known.UID == w.copy.UID && known.ResourceVersion == w.copy.ResourceVersion {
		known.Known, known.Drifted = true, known.Drifted || !holds
		c.copies.Put(w.slot, known)
	}
	c.mu.Unlock()
	c.enqueue(key{w.Name, w.slot.Namespace})
	return nil
}

// examine reads an obstacle once, to know whether it is identical.
func (c *Controller) examine(ctx context.Context, w work) error {
	object, err := c.readPlanned(ctx, w)
	if err != nil || object == nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := w.obstacles[w.slot.Namespace]; o != nil && o.ResourceVersion == w.seenVersion() {
		examined := *o
		if examined.Examined, examined.Identical = true, w.distribution.Template.Identical(object); !examined.Identical {
			examined.Reason = v1alpha1.ReasonNotIdentical
		}
		w.obstacles[w.slot.Namespace] = &examined
	}
	return nil
}

// overwrite writes the template over somebody's object, which it keeps the labels, annotations and owners of.
func (c *Controller) overwrite(ctx context.Context, w work) error {
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

// drop forgets what the API server says is not there, or ours no longer.
func (c *Controller) drop(w work) {
	c.mu.Lock()
	var keys []key
	if known := c.copies.At(w.slot); known != nil && w.copy != nil && known.UID == w.copy.UID {
		keys = c.dropCopy(w.slot)
	}
	if w.run != nil {
		delete(w.obstacles, w.slot.Namespace)
	}
	c.mu.Unlock()
	c.enqueue(keys...)
}

// sayFarewell lets go of a copy whose distribution is gone.
func (c *Controller) sayFarewell(ctx context.Context, k key) {
	c.mu.Lock()
	var all []work
	for slot, one := range c.copies.In(k.namespace) {
		if kind := c.kinds[slot.Kind]; one.By == k.distribution && kind != nil && kind.state == kindActive && c.synced {
			if verb := distribute.Farewell(one); verb != distribute.Nothing {
				all = append(all, work{slot: slot, resource: kind.resource, action: distribute.Action{Verb: verb}, copy: one})
			}
		}
	}
	c.mu.Unlock()
	for _, w := range all {
		if err := c.carryOut(ctx, w); err != nil {
			c.queue.AddAfter(k, c.Timing.TransientMax)
		}
	}
}

// immutable says whether a PUT was refused because of a field that can't change, and which kind of obstacle that is.
func immutable(err error) (v1alpha1.Reason, bool) {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // straight from the client
	if !ok || status.Status().Code != http.StatusUnprocessableEntity || status.Status().Details == nil {
		return "", false
	}
	for _, cause := range status.Status().Details.Causes {
		switch cause.Field {
		case "type":
			return v1alpha1.ReasonTypeDiffers, true
		case "data", "binaryData", "immutable":
			return v1alpha1.ReasonImmutable, true
		}
	}
	return "", false
}
