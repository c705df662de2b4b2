package labelling

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Replace implements watchset.Sink, and so do Put, Gone and State.
func (s *sink) Replace(_, version string, all []client.Object) {
	s.slots.Add(s.tables.takeList(s.kind, version, all)...)
}

func (s *sink) Put(object client.Object) { s.slots.Add(s.tables.takeObject(s.kind, object, true)...) }

func (s *sink) Gone(object client.Object) { s.slots.Add(s.tables.takeObject(s.kind, object, false)...) }

func (s *sink) State(_ string, now watchset.Status) { s.slots.Add(s.tables.setState(s.kind, now)...) }
