package propagation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/index"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// settle makes sure of one source: it reads a version that was not read yet, or makes sure that a missing one is gone.
// Then every slot that the source concerns is looked at.
func (e *Engine) settle(ctx context.Context, slot propagate.Slot) {
	e.mu.Lock()
	var s *propagate.Source
	if known := e.world.Source(slot); known != nil {
		c := *known
		s = &c
	}
	loss, copies := e.world.Loss(slot), e.world.HasCopies(slot)
	e.mu.Unlock()
	var err error
	switch {
	case s == nil && (!copies || loss != propagate.Unverified):
	case s == nil:
		err = e.verifyLoss(ctx, slot)
	case s.Invalid != "":
		e.sourceEvent(slot, s.UID, corev1.EventTypeWarning, v1alpha1.ReasonInvalidSource, s.Invalid)
	case s.Excluded == "" && s.Content == "" && s.Mode != v1alpha1.ModeNone && !s.Terminating:
		_, err = e.read(ctx, slot)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		e.retryLater(sourceOf(slot), err)
		return
	}
	e.recovered(sourceOf(slot))
	e.announceExclusion(slot)
	e.mu.Lock()
	slots := e.world.SlotsOf(slot)
	e.fanouts.spread(slot, slots, e.world.Plan)
	e.mu.Unlock()
	e.enqueue(slotKeys(slots)...)
}

// read gets a source whole and notes what it shows.
func (e *Engine) read(ctx context.Context, slot propagate.Slot) (body, error) {
	resource, ok := e.resource(slot.Kind)
	if !ok {
		return body{}, fmt.Errorf("%s is not served", slot.Kind)
	}
	object, err := e.writer.object(ctx, resource, slot)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "source").Inc()
	if err != nil {
		return body{}, err
	}
	u := unstructured.Unstructured{Object: object}
	read := body{uid: string(u.GetUID()), resourceVersion: u.GetResourceVersion()}
	e.mu.Lock()
	rules := e.settings.Rules
	e.mu.Unlock()
	if read.Body, err = propagate.Render(slot, object, rules); err != nil {
		return body{}, err
	}
	e.bodies.put(slot, read)
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.world.Source(slot); s != nil && s.UID == read.uid && !index.Newer(s.ResourceVersion, read.resourceVersion) {
		s.Content, s.Meta = read.Content, read.Meta
		if s.Excluded == "" {
			s.Excluded = read.Excluded
		}
	}
	return read, nil
}

// bodyOf is the body of the source at slot with this content; it is read again if it is no longer kept.
func (e *Engine) bodyOf(ctx context.Context, slot propagate.Slot, content string) (body, error) {
	if kept, ok := e.bodies.get(slot, content); ok {
		return kept, nil
	}
	read, err, _ := e.reading.Do(slot.String(), func() (any, error) { return e.read(ctx, slot) })
	if err != nil {
		return body{}, err
	}
	return read.(body), nil
}

// verifyLoss looks at a source that the watch no longer shows, and if it is gone at its namespace: a source that goes
// with its namespace, or that we merely don't see, must not take its copies with it.
func (e *Engine) verifyLoss(ctx context.Context, slot propagate.Slot) error {
	resource, ok := e.resource(slot.Kind)
	if !ok {
		return nil
	}
	loss := propagate.Confirmed
	meta, err := e.writer.metadata(ctx, resource, slot.Namespace, slot.Name)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "source").Inc()
	switch {
	case apierrors.IsNotFound(err):
		namespace, err := e.writer.metadata(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", slot.Namespace)
		reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "namespace").Inc()
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err != nil || namespace.DeletionTimestamp != nil {
			loss = propagate.Doubtful
		}
	case err != nil:
		return err
	default:
		e.mu.Lock()
		if _, still := e.settings.Rules.SourceOf(slot, meta, e.modeOf(slot)); still {
			loss = propagate.Doubtful // the watch is behind; its event will tell
		}
		e.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.world.SetLoss(slot, loss)
	return nil
}

func (e *Engine) modeOf(slot propagate.Slot) propagate.KindMode {
	if run := e.kinds[slot.Kind]; run != nil {
		return run.kind.Mode
	}
	return propagate.OptIn
}

// announceExclusion tells the owner of a source that opted in, but is never propagated. An object that is merely covered
// by mode All is passed over in silence.
func (e *Engine) announceExclusion(slot propagate.Slot) {
	e.mu.Lock()
	s := e.world.Source(slot)
	tell := s != nil && s.Excluded != "" && e.modeOf(slot) == propagate.OptIn && s.Mode != v1alpha1.ModeNone
	var uid, reason string
	if tell {
		uid, reason = s.UID, s.Excluded
	}
	e.mu.Unlock()
	if tell {
		e.sourceEvent(slot, uid, corev1.EventTypeWarning, v1alpha1.ReasonSourceExcluded, reason)
	}
}
