package propagation

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// sources read each version of a source once, and verify that missing sources are gone.
type sources struct {
	tables   *tables
	facts    facts
	kinds    *kinds
	queue    *queue
	bodies   *bodies
	writer   *copying.Writer
	troubles *troubles
	notices  *notices
	measure  *measure
	reading  singleflight.Group
}

// checkSource reads a version of a source that was not read yet, or makes sure that a missing source is gone. Then every
// slot that the source concerns is queued.
func (s *sources) checkSource(ctx context.Context, slot propagate.Slot) {
	known := s.facts.source(slot)
	var wasRead bool
	var err error
	switch {
	case !s.facts.seesSource(slot): // setSight queues this source again when the operator can see its namespace
		s.troubles.clearTransient(slot)
		return
	case known == nil && s.facts.lossToVerify(slot):
		err = s.verifyLoss(ctx, slot)
	case known == nil:
	case known.Invalid != "":
		s.notices.tellSource(slot, known.UID, corev1.EventTypeWarning, v1alpha1.ReasonInvalidSource, known.Invalid)
	case known.IsUnread() && s.isNeeded(slot):
		wasRead = true
		_, err = s.readSource(ctx, slot)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		s.troubles.retryLater(sourceKey(slot), err)
		return
	}
	s.troubles.clearTransient(slot)
	s.troubles.noteSource(slot, known)
	s.announceExclusion(slot)
	slots := s.facts.slotsOf(slot)
	if now := s.facts.source(slot); wasRead && now != nil && now.IsUnread() {
		// The read has shown another object, or none: the watch is behind, and its next event queues these slots. Now they would ask for the
		// same read again and again.
		slots = slices.DeleteFunc(slots, s.asksFor(slot))
	}
	s.measure.spreadFanout(slot, slots, s.facts.plan)
	s.queue.Add(slotKeys(slots)...)
}

// isNeeded says whether the body of a source that was not read yet is needed: where the source reaches a slot, where copies of it stand, whose
// size counts for limits, and for all that gives rights. The body of any other source is read when a namespace comes below it, or gets labels
// that its selector selects: then the plan of a slot asks for it.
func (s *sources) isNeeded(slot propagate.Slot) bool {
	return propagate.GivesRights(slot) || s.facts.hasCopyOf(slot) || slices.ContainsFunc(s.facts.slotsOf(slot), s.asksFor(slot))
}

// asksFor returns a function that says whether the plan of a slot asks for a read of source.
func (s *sources) asksFor(source propagate.Slot) func(propagate.Slot) bool {
	return func(at propagate.Slot) bool {
		action := s.facts.plan(at)
		return action.Verb == propagate.Look && action.Source == source
	}
}

// readSource reads a whole source from the API server, and notes its body in bodies and in the tables.
func (s *sources) readSource(ctx context.Context, slot propagate.Slot) (body, error) {
	mapping := s.kinds.mappingOf(slot.Kind)
	if mapping == nil {
		return body{}, fmt.Errorf("%s is not served", slot.Kind)
	}
	rules := s.facts.rules()
	object, err := s.writer.Object(ctx, mapping.Resource, slot)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "source").Inc()
	if err != nil {
		return body{}, err
	}
	u := unstructured.Unstructured{Object: object}
	read := body{uid: string(u.GetUID()), resourceVersion: u.GetResourceVersion()}
	if read.Body, err = propagate.Render(slot, object, rules); err != nil {
		return body{}, err
	}
	s.bodies.put(slot, read)
	s.tables.noteRead(slot, read)
	return read, nil
}

// bodyOf returns the body of the source at slot: the kept one if it has this content. Otherwise the source is read again, and the body may be
// that of a newer version with other content.
func (s *sources) bodyOf(ctx context.Context, slot propagate.Slot, content string) (body, error) {
	if kept, ok := s.bodies.get(slot, content); ok {
		return kept, nil
	}
	read, err, _ := s.reading.Do(slot.String(), func() (any, error) { return s.readSource(ctx, slot) })
	if err != nil {
		return body{}, err
	}
	return read.(body), nil
}

// verifyLoss reads a source that the watch no longer shows and, if the source is gone, the source's namespace; it notes the Loss that these
// reads show. A source that goes with its namespace, or that the operator merely can't see, must not take its copies with it.
func (s *sources) verifyLoss(ctx context.Context, slot propagate.Slot) error {
	mapping := s.kinds.mappingOf(slot.Kind)
	if mapping == nil {
		return nil
	}
	loss := propagate.Confirmed
	meta, err := s.writer.Metadata(ctx, mapping.Resource, slot.Namespace, slot.Name)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "source").Inc()
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // a right may have gone together with the namespace
		goes, lookErr := s.namespaceGoes(ctx, slot)
		switch {
		case lookErr != nil:
			return lookErr
		case goes:
			loss = propagate.GoneWithNamespace
		case apierrors.IsForbidden(err):
			return err
		}
	case err != nil:
		return err
	default:
		rules := s.facts.rules()
		if _, still := rules.SourceOf(slot, meta, s.kinds.modeOf(slot.Kind)); still {
			loss = propagate.Doubtful // the watch is behind: its next event brings the source
		}
	}
	s.tables.noteLoss(slot, loss)
	return nil
}

// namespaceGoes says whether the namespace of a source is gone or terminating.
func (s *sources) namespaceGoes(ctx context.Context, slot propagate.Slot) (bool, error) {
	namespace, err := s.writer.Metadata(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", slot.Namespace)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "namespace").Inc()
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	return err != nil || namespace.DeletionTimestamp != nil, nil
}

// announceExclusion sends an Event on a source whose owner has set the label propagate, but that is never propagated. No Event is sent on an
// object that is a source only because its kind is in mode All.
func (s *sources) announceExclusion(slot propagate.Slot) {
	known := s.facts.source(slot)
	if known != nil && known.Excluded != "" && known.Maker == propagate.Labelled && known.Mode != v1alpha1.ModeNone {
		s.notices.tellSource(slot, known.UID, corev1.EventTypeWarning, v1alpha1.ReasonSourceExcluded, known.Excluded)
	}
}
