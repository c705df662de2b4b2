package copies

import (
	"context"
	"errors"
	"net/http"

	"golang.org/x/sync/singleflight"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copying"
)

// Requests carries out the requests of a State.
type Requests struct {
	api      copying.API
	rules    copies.Rules
	sources  *sources
	removals *removalChecks
}

// NewRequests returns Requests for the State to which read and apply give access.
func NewRequests(api copying.API, v namespaceView, rules copies.Rules, read func(func(*copies.State)),
	apply func(copies.Input) copies.Request) *Requests {
	return &Requests{api: api, rules: rules, sources: newSources(api, rules, apply), removals: newRemovalChecks(v, api, read)}
}

// Unshared makes each request do its own reads, rather than wait for an equal read that is under way. It is for a caller that carries out
// several requests by turns on one goroutine.
func (r *Requests) Unshared() *Requests {
	alone := func(_ string, read func() (any, error)) (any, error) { return read() }
	r.sources.share, r.removals.share = alone, alone
	return r
}

// share lets callers that ask for the same key at the same time share one read.
type share func(key string, read func() (any, error)) (any, error)

func newShare() share {
	group := &singleflight.Group{}
	return func(key string, read func() (any, error)) (any, error) {
		answer, err, _ := group.Do(key, read)
		return answer, err
	}
}

// CarryOut carries out one request, and returns the answer.
func (r *Requests) CarryOut(ctx context.Context, request copies.Request) copies.Input {
	switch one := request.(type) {
	case copies.ReadSource:
		_, err := r.sources.read(ctx, one.Source, one.Resource)
		return copies.SourceRead{Source: one.Source, Err: err}
	case copies.FindLoss:
		loss, err := r.sources.findLoss(ctx, one)
		return copies.LossFound{Source: one.Source, Loss: loss, Err: err}
	case copies.CheckRemoval:
		return copies.RemovalChecked{CheckRemoval: one, Err: r.removals.checkRemoval(ctx, one.Slot, one.Action.Source.Namespace,
			one.Over.ResourceVersion)}
	case copies.WriteCopy:
		w := &copyWrite{Requests: r, WriteCopy: one}
		err := w.carryOut(ctx)
		return copies.CopyWritten{WriteCopy: one, Result: w.result, Err: err}
	}
	panic("an unknown request") // the four above are all
}

// copyWrite is the requests for one slot, and what they have shown so far.
type copyWrite struct {
	*Requests
	copies.WriteCopy
	result copies.Result
}

func (w *copyWrite) carryOut(ctx context.Context) error {
	switch w.Action.Verb {
	case copies.Inspect:
		return w.inspectCopy(ctx)
	case copies.Withdraw:
		return w.withdrawCopy(ctx)
	case copies.Delete:
		return w.deleteCopy(ctx)
	case copies.Update:
		return w.updateCopy(ctx)
	}
	if w.Probe { // a GET of metadata, rather than a POST that is refused again
		return w.readObstacle(ctx)
	}
	return w.createCopy(ctx)
}

// renderBody returns the request body for the copy. If the source has changed since the plan, the body has the newer content, and so has
// the copy's hash.
func (w *copyWrite) renderBody(ctx context.Context, over *copies.Copy) ([]byte, error) {
	body, err := w.sources.bodyOf(ctx, w.Action.Source, w.Resource, w.Action.Hash.Content)
	if err != nil {
		return nil, err
	}
	if err := w.checkRole(ctx, body); err != nil {
		return nil, err
	}
	w.Action.Hash.Content = body.Content // a PUT of newer content follows the source, and is no repair
	return body.JSON(w.Slot, w.Action.Source.Namespace, w.Action.Hash, over)
}

func (w *copyWrite) createCopy(ctx context.Context) error {
	data, err := w.renderBody(ctx, nil)
	if err != nil {
		return err
	}
	meta, err := w.api.Create(ctx, w.Resource, w.Slot, data)
	countWrite(w.Slot, http.MethodPost, err)
	if apierrors.IsAlreadyExists(err) {
		return w.readObstacle(ctx)
	}
	if err == nil {
		w.result.Written = meta
	}
	return err
}

// readObstacle reads what is where the copy should be. The object may be the operator's own copy after all, because an answer was lost, the
// watch is behind, or somebody took the label off. For another object readObstacle returns ErrObstacle, for one that is being deleted
// ErrBeingDeleted.
func (w *copyWrite) readObstacle(ctx context.Context) error {
	meta, err := w.api.Metadata(ctx, w.Resource, w.Slot.Namespace, w.Slot.Name)
	countRead(w.Slot, "copy")
	switch {
	case apierrors.IsNotFound(err):
		return w.createCopy(ctx)
	case err != nil:
		return err
	case meta.DeletionTimestamp != nil:
		return copies.ErrBeingDeleted
	}
	hash := copies.ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	from, labelled := meta.Labels[v1alpha1.LabelInheritedFrom]
	if !labelled {
		from = copies.UnlabelledFrom(w.removals.view.Snapshot(), w.Slot, meta) // not the Action's source, if the wanted source has changed since
		meta.Labels = map[string]string{v1alpha1.LabelInheritedFrom: from}
	}
	// A copy in mode create that nobody writes over stays without its label, and no watch shows when it is gone: it is looked at again.
	isKept := !labelled && hash.Mode == v1alpha1.ModeCreate && w.Action.Hash.Mode == v1alpha1.ModeCreate
	if hash.Place == "" || hash.Place != copies.PlaceOf(w.Slot, from) || isKept {
		return copies.ErrObstacle
	}
	w.result.Found, w.result.Unlabelled = meta, !labelled
	return nil
}

func (w *copyWrite) updateCopy(ctx context.Context) error {
	data, err := w.renderBody(ctx, w.Over)
	if other := (copies.OtherRoleError{}); errors.As(err, &other) {
		return errors.Join(err, w.deleteCopy(ctx)) // the copy must not go on binding to the other Role that is there now
	}
	if err != nil {
		return err
	}
	meta, err := w.api.Update(ctx, w.Resource, w.Slot, data)
	countWrite(w.Slot, http.MethodPut, err)
	switch {
	case err == nil:
		w.result.Written, w.result.Repaired = meta, copies.IsRepair(w.Over, w.Action)
	case apierrors.IsNotFound(err):
		w.result.Absent = true
		return nil
	case copies.IsImmutable(w.Slot, err):
		return w.deleteCopy(ctx) // the copy is made again when the old one is gone
	}
	return err
}

func (w *copyWrite) deleteCopy(ctx context.Context) error {
	err := w.api.Delete(ctx, w.Resource, w.Slot, w.Over.UID, w.Over.ResourceVersion)
	countWrite(w.Slot, http.MethodDelete, err)
	w.result.Absent, w.result.Deleted = apierrors.IsNotFound(err), err == nil
	if w.result.Absent {
		return nil
	}
	return err
}

// readBoth reads the copy from the API server, and its source. A copy that is gone comes back as nil.
func (w *copyWrite) readBoth(ctx context.Context) (map[string]any, *copies.Body, error) {
	object, err := w.api.Object(ctx, w.Resource, w.Slot)
	countRead(w.Slot, "copy")
	if apierrors.IsNotFound(err) {
		w.result.Absent = true
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	source, err := w.sources.bodyOf(ctx, w.Action.Source, w.Resource, w.Action.Hash.Content)
	return object, source, err
}

// recordCompared records that this version of the copy was compared with the body of its source.
func (w *copyWrite) recordCompared(source *copies.Body, uid, resourceVersion string) {
	w.result.Compared, w.result.ComparedUID, w.result.ComparedVersion = source, uid, resourceVersion
}

// inspectCopy reads a copy that may have been changed while no watch was open, and repairs it if it was.
func (w *copyWrite) inspectCopy(ctx context.Context) error {
	object, source, err := w.readBoth(ctx)
	if err != nil || object == nil {
		return err
	}
	found, err := copies.Render(w.Slot.At(w.Action.Source.Namespace), object, w.rules)
	if err != nil {
		return err
	}
	if source.Differs(found, w.Over.Foreign) {
		w.Over.Drifted, w.result.FoundDrifted = true, true
		return w.updateCopy(ctx)
	}
	w.recordCompared(source, w.Over.UID, w.Over.ResourceVersion)
	return nil
}

// withdrawCopy takes away from an access copy what its source no longer gives, in a namespace that is halted or protected, where the
// operator adds nothing. The watch may be behind, so the copy is read from the API server, and the PUT is guarded by the resourceVersion of
// that read.
func (w *copyWrite) withdrawCopy(ctx context.Context) error {
	object, source, err := w.readBoth(ctx)
	if err != nil || object == nil {
		return err
	}
	withdrawal, err := source.Withdraw(w.Slot, object)
	switch {
	case err != nil:
		return err
	case withdrawal.Remove:
		return w.deleteCopy(ctx)
	case withdrawal.Body == nil:
		w.recordCompared(source, w.Over.UID, w.Over.ResourceVersion)
		return nil
	}
	meta, err := w.api.Update(ctx, w.Resource, w.Slot, withdrawal.Body)
	countWrite(w.Slot, http.MethodPut, err)
	if err != nil {
		return err
	}
	w.result.Written = meta
	w.recordCompared(source, string(meta.UID), meta.ResourceVersion)
	return nil
}

// A RoleBinding that names a Role means another Role in each namespace. When a user writes a source that does so, the API server checks
// that the user holds the rights of the Role beside the source. The operator may bind every Role, so the API server does not check what the
// operator writes. That is why a copy of such a binding is written only beside a copy of that very Role. Otherwise users could bind
// themselves to a Role of that name that a more powerful user has created below.

// checkRole returns an OtherRoleError unless the Role that the binding names is the same at the slot as at its source. It reads the Roles
// from the API server, because a binding is not checked again once it is written, and what a watch has shown may be a moment old. One read
// suffices where the Role at the slot is a copy from the source's own namespace. Where that Role comes from another namespace, the Role
// beside the source is read, too: both must have the same origin.
func (w *copyWrite) checkRole(ctx context.Context, body *copies.Body) error {
	if body.Role == "" {
		return nil
	}
	if w.Action.Hash.Mode == v1alpha1.ModeCreate {
		return copies.UnkeptBindingError(body.Role)
	}
	source := w.Action.Source.Namespace
	there, err := w.originOfRole(ctx, w.Slot.Namespace, body.Role)
	if err != nil || there == source {
		return err
	}
	meant := ""
	if there != "" && there != w.Slot.Namespace {
		if meant, err = w.originOfRole(ctx, source, body.Role); err != nil {
			return err
		}
	}
	if meant == "" || there != meant {
		return copies.OtherRoleError{Namespace: w.Slot.Namespace, Role: body.Role, Source: source}
	}
	return nil
}

// originOfRole returns where the Role of this name in namespace comes from: the namespace of its source if the Role is a copy that only the
// operator may change, otherwise namespace itself. It returns "" if there is no such Role, or it is being deleted.
func (w *copyWrite) originOfRole(ctx context.Context, namespace, name string) (string, error) {
	slot := copies.Slot{Kind: rbacv1.SchemeGroupVersion.WithKind("Role").GroupKind(), Namespace: namespace, Name: name}
	meta, err := w.api.Metadata(ctx, rbacv1.SchemeGroupVersion.WithResource("roles"), namespace, name)
	countRead(slot, "copy")
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	case meta.DeletionTimestamp != nil:
		return "", nil // the next Role of that name may be another
	}
	from, hash := meta.Labels[v1alpha1.LabelInheritedFrom], copies.ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	if from != "" && hash.Mode == v1alpha1.ModeUpdate && hash.Place == copies.PlaceOf(slot, from) {
		return from, nil
	}
	return namespace, nil
}
