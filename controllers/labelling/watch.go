package labelling

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// followKinds follows each kind in the whole cluster until ctx is done. Objects of one kind may be both generators and
// generated, such as Secrets, which a Certificate generates.
func (l *Labeller) followKinds(ctx context.Context, queue workqueue.TypedRateLimitingInterface[copies.Slot]) error {
	if err := l.View.WaitForSync(ctx); err != nil {
		return nil //nolint:nilerr // the manager is stopping
	}
	if err := l.slots.Start(ctx, queue); err != nil { // before the first list, whose objects it queues
		return err
	}
	kinds := map[schema.GroupKind]schema.GroupVersionKind{}
	for _, kind := range slices.Concat(l.settings.Kinds, l.settings.Generators) {
		kinds[kind.GroupKind()] = kind
	}
	for _, kind := range kinds {
		lease, err := l.Informers.Acquire(watchset.Static("generated"),
			watchset.Request{Kind: kind, Sink: &sink{Labeller: l, kind: kind.GroupKind()}})
		if err != nil {
			return fmt.Errorf("watching %s: %w", kind.GroupKind(), err)
		}
		context.AfterFunc(ctx, lease.Release)
	}
	return nil
}

// sink enters into the tables what the watch of a kind sees. It implements watchset.Sink.
type sink struct {
	*Labeller
	kind schema.GroupKind
}

func (s *sink) isGenerator() bool { return slices.ContainsFunc(s.settings.Generators, s.isOf) }
func (s *sink) isGenerated() bool { return slices.ContainsFunc(s.settings.Kinds, s.isOf) }

func (s *sink) isOf(kind schema.GroupVersionKind) bool { return kind.GroupKind() == s.kind }

// Replace implements watchset.Sink, and so do Put, Gone and State.
func (s *sink) Replace(_, _ string, all []client.Object) {
	generators, objects := map[types.UID]generator{}, map[copies.Slot]*copies.Generated{}
	for _, object := range all {
		if s.isGenerator() {
			generators[object.GetUID()] = generatorOf(s.kind, object)
		}
		if now := copies.GeneratedOf(object); now != nil && s.isGenerated() {
			objects[s.slotOf(object)] = now
		}
	}
	s.slots.Add(s.tables.replaceObjects(s.kind, generators, objects)...)
}

func (s *sink) Put(object client.Object) {
	if s.isGenerator() {
		s.slots.Add(s.tables.putGenerator(object.GetUID(), generatorOf(s.kind, object))...)
	}
	if s.isGenerated() {
		if slot := s.slotOf(object); s.tables.putObject(slot, copies.GeneratedOf(object)) {
			s.slots.Add(slot)
		}
	}
}

func (s *sink) Gone(object client.Object) {
	s.slots.Add(s.tables.removeGenerator(object.GetUID())...)
	s.tables.removeObject(s.slotOf(object))
}

func (s *sink) State(_ string, now watchset.Status) { s.slots.Add(s.tables.setState(s.kind, now)...) }

func (s *sink) slotOf(object client.Object) copies.Slot {
	return copies.Slot{Kind: s.kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}
