package copies

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copying"
)

// bodiesLimit bounds the bodies of sources that are kept, in bytes. A source whose body was dropped is read again when the body is needed.
const bodiesLimit = 16 << 20

// sources read sources from the API server, and keep the bodies that were used last.
type sources struct {
	api   copying.API
	rules copies.Rules
	apply func(copies.Input) copies.Request
	share share

	mu     sync.Mutex // guards bodies and size
	bodies *simplelru.LRU[copies.Slot, *copies.Body]
	size   int // of the bodies, in bytes
}

func newSources(api copying.API, rules copies.Rules, apply func(copies.Input) copies.Request) *sources {
	s := &sources{api: api, rules: rules, apply: apply, share: newShare()}
	s.bodies, _ = simplelru.NewLRU(1<<20, func(_ copies.Slot, old *copies.Body) { s.size -= old.Size }) // fails for a size of 0 only
	return s
}

func (s *sources) keepBody(slot copies.Slot, body *copies.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies.Remove(slot)
	s.bodies.Add(slot, body)
	s.size += body.Size
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

// read reads a whole source from the API server, and applies what it has shown.
func (s *sources) read(ctx context.Context, slot copies.Slot, resource schema.GroupVersionResource) (*copies.Body, error) {
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
	s.keepBody(slot, body)
	s.apply(copies.BodyRead{Source: slot, UID: uid, ResourceVersion: resourceVersion, Body: body})
	return body, nil
}

// bodyOf returns the body of a source: the kept one if it has this content. Otherwise the source is read again, and the body may be that of
// a newer version with other content.
func (s *sources) bodyOf(ctx context.Context, slot copies.Slot, resource schema.GroupVersionResource,
	content string) (*copies.Body, error) {
	if kept := s.findBody(slot, content); kept != nil {
		return kept, nil
	}
	read, err := s.share(slot.String(), func() (any, error) { return s.read(ctx, slot, resource) })
	if err != nil {
		return nil, err
	}
	return read.(*copies.Body), nil
}

// findLoss reads a source that no watch shows any more and, if the source is gone, the source's namespace. A source that goes with its
// namespace, or that the operator merely cannot see, must not take its copies with it.
func (s *sources) findLoss(ctx context.Context, request copies.FindLoss) (copies.Loss, error) {
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
