package distribution

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
)

var distributions = v1alpha1.GroupVersion.WithResource("resourcedistributions")

// Requests carries out the requests of a State.
type Requests struct {
	API    copying.API
	Timing distribute.Timing
	// List lists the possible obstacles of a distribution, by one request.
	List func(ctx context.Context, of distribute.ObstacleWatch) ([]*metav1.PartialObjectMetadata, error)
}

// CarryOut carries out one request, and returns the answer.
func (r *Requests) CarryOut(ctx context.Context, request distribute.Request) distribute.Input {
	limit := r.Timing.Write
	if _, lists := request.(distribute.ListObstacles); lists {
		limit = r.Timing.List
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch one := request.(type) {
	case distribute.ListObstacles:
		objects, err := r.List(ctx, one.ObstacleWatch)
		return distribute.ObstaclesFound{ListObstacles: one, Objects: objects, Err: err}
	case distribute.WriteStatus:
		version, err := r.writeStatus(ctx, one)
		return distribute.StatusWritten{WriteStatus: one, NewVersion: version, Err: err}
	case distribute.WriteCopy:
		w := &copyWrite{Requests: r, WriteCopy: one}
		err := w.carryOut(ctx)
		return distribute.CopyWritten{WriteCopy: one, Answer: w.answer, Err: err}
	}
	panic("an unknown request") // the three above are all
}

// listWith returns a Requests.List that asks the API server.
func listWith(lister metadata.Interface) func(context.Context, distribute.ObstacleWatch) ([]*metav1.PartialObjectMetadata, error) {
	return func(ctx context.Context, of distribute.ObstacleWatch) (all []*metav1.PartialObjectMetadata, err error) {
		isNoCopy, hasName := selectorsOf(&of)
		list, err := lister.Resource(of.Resource).List(ctx, metav1.ListOptions{LabelSelector: isNoCopy.String(), FieldSelector: hasName.String()})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		return all, nil
	}
}

// writeStatus sends the status alone; the API server keeps the rest of the object. It returns the new resourceVersion.
func (r *Requests) writeStatus(ctx context.Context, w distribute.WriteStatus) (string, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": distribute.Kind,
		"metadata": map[string]any{"name": w.Name, "uid": w.UID, "resourceVersion": w.ResourceVersion},
		"status":   w.Status,
	})
	if err != nil {
		return "", err
	}
	meta, err := r.API.UpdateStatus(ctx, distributions, w.Name, body)
	if err != nil {
		return "", err
	}
	return meta.ResourceVersion, nil
}

// copyWrite is the requests for one target, and what they have shown so far. They fail if the object has changed since
// the plan (UID and resourceVersion).
type copyWrite struct {
	*Requests
	distribute.WriteCopy
	answer distribute.Answer
}

func (w *copyWrite) carryOut(ctx context.Context) error {
	d := w.Distribution
	switch w.Action.Verb {
	case distribute.Create:
		return w.createCopy(ctx)
	case distribute.Update:
		return w.updateCopy(ctx)
	case distribute.Remark:
		return w.rewriteMetadata(ctx, func(meta *metav1.ObjectMeta) { d.Remark(meta, w.Copy) })
	case distribute.Inspect:
		return w.compareObstacle(ctx, func(object map[string]any) bool { return d.Holds(object, w.Copy.Foreign) })
	case distribute.Examine:
		return w.compareObstacle(ctx, d.Template.Identical)
	case distribute.Adopt:
		return w.rewriteMetadata(ctx, d.Adopt)
	case distribute.Overwrite:
		return w.overwriteObstacle(ctx)
	case distribute.Delete:
		return w.deleteCopy(ctx)
	case distribute.HandBack:
		return w.rewriteMetadata(ctx, distribute.HandBackMeta)
	case distribute.Unlock:
		return w.rewriteMetadata(ctx, distribute.UnlockMeta)
	}
	return nil
}

// deleteCopy deletes a copy if its UID and resourceVersion are still those of the plan.
func (w *copyWrite) deleteCopy(ctx context.Context) error {
	err := w.API.Delete(ctx, w.Resource, w.Slot, w.Copy.UID, w.Copy.ResourceVersion)
	copying.CountWrite(writes, "delete", err)
	w.answer.Deleted = err == nil
	return w.unlessAbsent(err)
}

// unlessAbsent records that the object doesn't exist if err reports that; it returns any other error.
func (w *copyWrite) unlessAbsent(err error) error {
	if apierrors.IsNotFound(err) {
		w.answer.Absent = true
		return nil
	}
	return err
}

// createCopy makes a copy. The object that it finds in the slot, if any, may be the copy after all, because an answer
// was lost or the watch is behind.
func (w *copyWrite) createCopy(ctx context.Context) error {
	if err := w.confirmDistribution(ctx); err != nil {
		return err
	}
	body, err := w.Distribution.Template.Marked(w.Slot, w.Distribution.Marks(w.Slot.Namespace, false), nil)
	if err != nil {
		return err
	}
	meta, err := w.API.Create(ctx, w.Resource, w.Slot, body)
	copying.CountWrite(writes, "create", err)
	switch {
	case err == nil:
		w.answer.Written = meta
		return nil
	case !apierrors.IsAlreadyExists(err):
		return err
	}
	meta, err = w.API.Metadata(ctx, w.Resource, w.Slot.Namespace, w.Slot.Name)
	if apierrors.IsNotFound(err) {
		return nil // it has gone again
	}
	if err == nil {
		w.answer.Found = meta
	}
	return err
}

var errDeleted = errors.New("the ResourceDistribution is deleted, but the watch has not shown that yet")

// confirmDistribution returns errDeleted if the request is to read whether the distribution still exists, and it
// doesn't. Otherwise, while the watch is late, the operator would create what the garbage collector deletes.
func (w *copyWrite) confirmDistribution(ctx context.Context) error {
	if !w.Confirm {
		return nil
	}
	meta, err := w.API.Metadata(ctx, distributions, "", w.Distribution.Name)
	if apierrors.IsNotFound(err) || err == nil && (string(meta.UID) != w.Distribution.UID || meta.DeletionTimestamp != nil) {
		return errDeleted
	}
	return err
}

func (w *copyWrite) updateCopy(ctx context.Context) error {
	template := w.Distribution.Template
	body, err := template.Marked(w.Slot, w.Distribution.Marks(w.Slot.Namespace, w.Copy.Adopted), w.Copy.Over(template))
	if err != nil {
		return err
	}
	return w.putObject(ctx, body)
}

func (w *copyWrite) putObject(ctx context.Context, body []byte) error {
	meta, err := w.API.Update(ctx, w.Resource, w.Slot, body)
	copying.CountWrite(writes, "update", err)
	if err == nil {
		w.answer.Written = meta
	}
	return w.unlessAbsent(err)
}

// rewriteMetadata reads an object, changes only its metadata, and PUTs it.
func (w *copyWrite) rewriteMetadata(ctx context.Context, change func(*metav1.ObjectMeta)) error {
	object, err := w.readPlanned(ctx)
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
	return w.putObject(ctx, body)
}

// readPlanned reads the whole object for which the write was planned; nil if the object is gone, ErrStale if it has
// changed since the plan.
func (w *copyWrite) readPlanned(ctx context.Context) (map[string]any, error) {
	object, err := w.API.Object(ctx, w.Resource, w.Slot)
	if err != nil {
		return nil, w.unlessAbsent(err)
	}
	if u := (unstructured.Unstructured{Object: object}); u.GetResourceVersion() != w.SeenVersion() {
		return nil, distribute.ErrStale
	}
	return object, nil
}

// compareObstacle reads an obstacle, or a copy that may have been changed while no watch was open. It records whether
// the object is as it should be.
func (w *copyWrite) compareObstacle(ctx context.Context, isSame func(object map[string]any) bool) error {
	object, err := w.readPlanned(ctx)
	if err != nil || object == nil {
		return err
	}
	w.answer.Compared, w.answer.Same = true, isSame(object)
	return nil
}

// overwriteObstacle replaces an obstacle's content by the template. The object keeps its own labels, annotations,
// finalizers and ownerReferences.
func (w *copyWrite) overwriteObstacle(ctx context.Context) error {
	meta, err := w.API.Metadata(ctx, w.Resource, w.Slot.Namespace, w.Slot.Name)
	if err != nil {
		return w.unlessAbsent(err)
	}
	// Another version may be one that must not be overwritten: that is decided anew.
	if meta.ResourceVersion != w.SeenVersion() {
		return distribute.ErrStale
	}
	template := w.Distribution.Template
	body, err := template.Marked(w.Slot, w.Distribution.Marks(w.Slot.Namespace, true), distribute.OverForeign(meta, template))
	if err != nil {
		return err
	}
	return w.putObject(ctx, body)
}

// compareCopy applies a DriftFound for a copy that differs from its template, if its distribution reverts drift and the
// plan has no write for the copy.
func (r *Runner) compareCopy(_ context.Context, slot copies.Slot, _ schema.GroupVersionResource, object map[string]any) error {
	u := unstructured.Unstructured{Object: object}
	drift := distribute.DriftFound{Slot: slot, UID: string(u.GetUID()), ResourceVersion: u.GetResourceVersion()}
	var d *distribute.Distribution
	var known *distribute.Copy
	r.Read(func(s *distribute.State) { d, known = s.FindUnchanged(slot, drift.UID, drift.ResourceVersion) })
	if known != nil && !d.Holds(object, known.Foreign) {
		r.Apply(drift)
	}
	return nil
}
