package copies

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
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
func NewRequests(api copying.API, v namespaceView, rules copies.Rules, read func(func(*copyengine.State)),
	apply func(copyengine.Input) copyengine.Request) *Requests {
	return &Requests{api: api, rules: rules, sources: newSources(api, rules, apply), removals: newRemovalChecks(v, api, read)}
}

// Unshared makes each request do its own reads, rather than wait for an equal read that is under way. It is for a
// caller that carries out several requests on one goroutine, a part of each in turn.
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
func (r *Requests) CarryOut(ctx context.Context, request copyengine.Request) copyengine.Input {
	switch one := request.(type) {
	case copyengine.ReadSource:
		_, err := r.sources.readSource(ctx, one.Source, one.Resource)
		return copyengine.SourceRead{Source: one.Source, Err: err}
	case copyengine.FindLoss:
		loss, err := r.sources.findLoss(ctx, one)
		return copyengine.LossFound{Source: one.Source, Loss: loss, Err: err}
	case copyengine.CheckRemoval:
		return copyengine.RemovalChecked{CheckRemoval: one, Err: r.removals.checkRemoval(ctx, one.Slot, one.Action.Source.Namespace,
			one.Over.ResourceVersion)}
	case copyengine.WriteCopy:
		w := &copyWrite{Requests: r, WriteCopy: one}
		err := w.carryOut(ctx)
		return copyengine.CopyWritten{WriteCopy: one, Result: w.result, Err: err}
	}
	panic("an unknown request") // the four above are all
}

// copyWrite is the requests for one slot, and what they have shown so far.
type copyWrite struct {
	*Requests
	copyengine.WriteCopy
	result copyengine.Result
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

// renderBody returns the request body for the copy. If the planned body of the source is no longer kept, the source is
// read again: then the body and the copy's hash have its present content.
func (w *copyWrite) renderBody(ctx context.Context, over *copies.Copy) ([]byte, error) {
	body, err := w.sources.bodyOf(ctx, w.Action.Source, w.Resource, w.Action.Hash.Content)
	if err != nil {
		return nil, err
	}
	// Right before the write: since the plan, another Role may have taken the name.
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

// readObstacle reads the object that is where the copy should be, and creates the copy if that object is gone. The
// object may be the operator's own copy after all, because an answer was lost, the watch is behind, or somebody took
// the label off. For any other object readObstacle returns ErrObstacle, for one that is being deleted ErrBeingDeleted.
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
		metav1.SetMetaDataLabel(&meta.ObjectMeta, v1alpha1.LabelInheritedFrom, from)
	}
	// A copy in mode create that has lost its label stays as it is, and no watch shows when it is gone. As an obstacle,
	// it is read again later.
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
		if failed := w.deleteCopy(ctx); failed != nil { // the copy must not go on binding to the other Role that is there now
			return failed
		}
		return err
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

// withdrawCopy takes away from an access copy what its source no longer gives, in a namespace that is halted or
// protected, where the operator adds nothing. The watch may be behind, so the copy is read from the API server, and the
// PUT is guarded by the resourceVersion of that read.
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

// bodiesLimit bounds the bodies of sources that are kept, in bytes. A source whose body was dropped is read again when
// the body is needed.
const bodiesLimit = 16 << 20

// sources read sources from the API server, and keep the bodies that were used last.
type sources struct {
	api   copying.API
	rules copies.Rules
	apply func(copyengine.Input) copyengine.Request
	share share

	mu     sync.Mutex // guards bodies and size
	bodies *simplelru.LRU[copies.Slot, *copies.Body]
	size   int // of the bodies, in bytes
}

func newSources(api copying.API, rules copies.Rules, apply func(copyengine.Input) copyengine.Request) *sources {
	s := &sources{api: api, rules: rules, apply: apply, share: newShare()}
	s.bodies, _ = simplelru.NewLRU(1<<20, func(_ copies.Slot, old *copies.Body) { s.size -= old.Size }) // fails for a size of 0 only
	return s
}

func (s *sources) keepBody(slot copies.Slot, body *copies.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Add would replace the old body without the call that takes its size off.
	s.bodies.Remove(slot)
	s.bodies.Add(slot, body)
	s.size += body.Size
	// One body stays even if it is too large: otherwise each copy of it would cost a read.
	for s.size > bodiesLimit && s.bodies.Len() > 1 {
		s.bodies.RemoveOldest()
	}
}

// findBody returns the body with this content; nil if it is not kept.
func (s *sources) findBody(slot copies.Slot, content string) *copies.Body {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, ok := s.bodies.Get(slot); ok && kept.Content == content {
		return kept
	}
	return nil
}

// readSource reads a whole source from the API server, and applies what it has shown.
func (s *sources) readSource(ctx context.Context, slot copies.Slot, resource schema.GroupVersionResource) (*copies.Body, error) {
	object, err := s.api.Object(ctx, resource, slot)
	countRead(slot, "source")
	if err != nil {
		return nil, err
	}
	u := unstructured.Unstructured{Object: object}
	uid, resourceVersion := string(u.GetUID()), u.GetResourceVersion()
	body, err := copies.Render(slot, object, s.rules)
	if err != nil {
		return nil, err
	}
	// Before the State knows of it, so that the slots that it queues find the body.
	s.keepBody(slot, body)
	s.apply(copyengine.BodyRead{Source: slot, Resource: resource, UID: uid, ResourceVersion: resourceVersion, Body: body})
	return body, nil
}

// bodyOf returns the body of a source: the kept one if it has this content. Otherwise the source is read again, and the
// body may be that of a newer version with other content.
func (s *sources) bodyOf(ctx context.Context, slot copies.Slot, resource schema.GroupVersionResource,
	content string) (*copies.Body, error) {
	if kept := s.findBody(slot, content); kept != nil {
		return kept, nil
	}
	read, err := s.share(slot.ID(), func() (any, error) { return s.readSource(ctx, slot, resource) })
	if err != nil {
		return nil, err
	}
	return read.(*copies.Body), nil
}

// findLoss reads a source that no watch shows any more and, if the source is gone or may not be read, the source's
// namespace. The copies must stay if the source is deleted with its namespace, or if the operator merely cannot see it.
func (s *sources) findLoss(ctx context.Context, request copyengine.FindLoss) (copies.Loss, error) {
	slot := request.Source
	meta, err := s.api.Metadata(ctx, request.Resource, slot.Namespace, slot.Name)
	countRead(slot, "source")
	switch {
	case err == nil:
		if _, isSource := s.rules.SourceOf(slot, meta, request.Mode); isSource {
			return copies.Doubtful, nil // the watch is behind: its next event shows the source
		}
		return copies.Confirmed, nil
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err): // a right may have gone together with the namespace
		return copies.Unverified, err
	}
	goes, readErr := s.isNamespaceGoing(ctx, slot)
	switch {
	case readErr != nil:
		return copies.Unverified, fmt.Errorf("reading the namespace of %s: %w", slot, readErr)
	case goes:
		return copies.GoneWithNamespace, nil
	case apierrors.IsForbidden(err):
		return copies.Unverified, err
	}
	return copies.Confirmed, nil
}

// isNamespaceGoing reports whether the namespace of a source is gone or terminating.
func (s *sources) isNamespaceGoing(ctx context.Context, slot copies.Slot) (bool, error) {
	namespace, err := s.api.Metadata(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", slot.Namespace)
	countRead(slot, "namespace")
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return namespace.DeletionTimestamp != nil, nil
}
