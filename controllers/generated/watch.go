package generated

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// followKind watches a kind in the whole cluster whenever the API server serves the kind, until ctx is done. Objects of one kind may be both
// generators and generated, such as Secrets, which a Certificate generates.
func (l *Labeller) followKind(ctx context.Context, kind schema.GroupVersionKind) {
	backoff := wait.Backoff{Duration: l.Timing.LookMin, Cap: l.Timing.LookMax, Factor: 2, Jitter: 0.2, Steps: 32}
	for ctx.Err() == nil {
		mapping, err := apianswer.MappingOf(l.Mapper, kind)
		switch {
		case err == nil:
			l.watchServed(ctx, kind.GroupKind(), mapping)
		case meta.IsNoMatchError(err):
			l.tables.setState(kind.GroupKind(), watchset.Status{State: watchset.NotServed})
		default:
			ctrl.Log.WithName("generated").Error(err, "looking for a kind", "kind", kind.GroupKind().String())
		}
		meta.MaybeResetRESTMapper(l.Mapper) // the mapper keeps kinds that are no longer served
		select {
		case <-ctx.Done():
		case <-time.After(backoff.Step()):
		}
	}
}

// watchServed watches a kind until ctx is done or the API server no longer serves the kind.
func (l *Labeller) watchServed(ctx context.Context, kind schema.GroupKind, mapping *meta.RESTMapping) {
	sink := &sink{Labeller: l, kind: kind, gone: make(chan struct{}, 1)}
	l.tables.setMapping(kind, mapping)
	lease, err := l.set.Acquire(watchset.Static("generated"), watchset.Request{Resource: mapping.Resource, Sink: sink})
	if err != nil {
		ctrl.Log.WithName("generated").Error(err, "watching a kind", "kind", kind.String())
		return // the set has stopped, as the process does
	}
	select {
	case <-ctx.Done():
	case <-sink.gone:
	}
	lease.Release()
}

// sink enters what the watch of a kind sees in the tables. It implements watchset.Sink.
type sink struct {
	*Labeller
	kind schema.GroupKind
	gone chan struct{} // holds a token when the kind is no longer served
}

func (s *sink) isGenerator() bool { return slices.ContainsFunc(s.settings.Generators, s.isOf) }
func (s *sink) isGenerated() bool { return slices.ContainsFunc(s.settings.Kinds, s.isOf) }

func (s *sink) isOf(kind schema.GroupVersionKind) bool { return kind.GroupKind() == s.kind }

// Replace implements watchset.Sink, and so do the next three.
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
	s.add(s.tables.replace(s.kind, generators, objects)...)
}

func (s *sink) Put(object client.Object) {
	if s.isGenerator() {
		s.add(s.tables.putGenerator(object.GetUID(), generatorOf(s.kind, object))...)
	}
	if s.isGenerated() {
		if slot := s.slotOf(object); s.tables.putObject(slot, copies.GeneratedOf(object)) {
			s.add(slot)
		}
	}
}

func (s *sink) Gone(object client.Object) {
	s.add(s.tables.removeGenerator(object.GetUID())...)
	s.tables.removeObject(s.slotOf(object))
}

func (s *sink) State(_ string, now watchset.Status) {
	s.add(s.tables.setState(s.kind, now)...)
	if now.State == watchset.NotServed {
		select {
		case s.gone <- struct{}{}:
		default: // one token is enough
		}
	}
}

func (s *sink) slotOf(object client.Object) copies.Slot {
	return copies.Slot{Kind: s.kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}
