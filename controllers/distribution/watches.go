package distribution

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// watches follow ResourceDistributions and, once their CRD exists, the copies of every configured kind, and the
// obstacles of distributions in conflict.
type watches struct {
	runner *Runner
	kinds  []schema.GroupVersionKind
	served chan struct{} // has room for one signal: the CRD exists
	due    chan struct{} // has room for one signal: the watches of obstacles may have changed
	leases map[*distribute.ObstacleWatch]*watchset.Lease
}

func newWatches(r *Runner, kinds []schema.GroupVersionKind) *watches {
	return &watches{
		runner: r, kinds: kinds, served: make(chan struct{}, 1), due: make(chan struct{}, 1),
		leases: map[*distribute.ObstacleWatch]*watchset.Lease{},
	}
}

// runWatches follows everything until ctx is done. The copies are not followed before the CRD exists, which a component
// installs. When the CRD is deleted, the watches of copies go on, so that the copies that stay are unlocked.
func (w *watches) runWatches(ctx context.Context) error {
	w.runner.Apply(distribute.DefinitionChanged{})
	if err := w.acquireCopies(watchset.Request{
		Kind: v1alpha1.GroupVersion.WithKind(distribute.Kind), Form: watchset.Full, Sink: w.sinkOfDistributions(),
	}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-w.served:
	}
	isCopy, err := labels.Parse(v1alpha1.LabelDistributedBy)
	if err != nil {
		return err
	}
	for _, kind := range w.kinds {
		if err := w.acquireCopies(watchset.Request{Kind: kind, LabelSelector: isCopy, Sink: w.sinkOfCopies(kind.GroupKind())}); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.due:
			w.followObstacles()
		}
	}
}

type (
	input  = distribute.Input
	object = *metav1.PartialObjectMetadata
)

func (w *watches) applyInput(one input) { w.runner.Apply(one) }

// definitions passes on the state of the watch of ResourceDistributions only if it is known, and signals that their CRD
// exists.
type definitions struct {
	watchset.Sink
	served chan<- struct{}
}

// State implements watchset.Sink.
func (d definitions) State(namespace string, now watchset.Status) {
	if now.State == "" {
		return
	}
	if d.Sink.State(namespace, now); now.State != watchset.NotServed && now.Resource.Resource != "" {
		leaveToken(d.served)
	}
}

func (w *watches) sinkOfDistributions() watchset.Sink {
	type distribution = *v1alpha1.ResourceDistribution
	return definitions{&copying.Sink[input, distribution]{
		Apply:   w.applyInput,
		Listed:  func(_, _ string, all []distribution) input { return distribute.DistributionsListed{All: all} },
		Seen:    func(one distribution) input { return distribute.DistributionSeen{ResourceDistribution: one} },
		Left:    func(one distribution) input { return distribute.DistributionGone{ResourceDistribution: one} },
		Changed: func(_ string, now watchset.Status) input { return distribute.DefinitionChanged{Status: now} },
	}, w.served}
}

func (w *watches) sinkOfCopies(kind schema.GroupKind) watchset.Sink {
	return &copying.Sink[input, object]{
		Apply: w.applyInput,
		Listed: func(_, resourceVersion string, all []object) input {
			return distribute.CopiesListed{Kind: kind, ResourceVersion: resourceVersion, Objects: all}
		},
		Seen:    func(one object) input { return distribute.CopySeen{Kind: kind, Object: one} },
		Left:    func(one object) input { return distribute.CopyGone{Kind: kind, Object: one} },
		Changed: func(_ string, now watchset.Status) input { return distribute.KindChanged{Kind: kind, Status: now} },
	}
}

func (w *watches) sinkOfObstacles(of *distribute.ObstacleWatch) watchset.Sink {
	return &copying.Sink[input, object]{
		Apply: w.applyInput,
		Listed: func(_, resourceVersion string, all []object) input {
			return distribute.ObstaclesListed{Watch: of, ResourceVersion: resourceVersion, Objects: all}
		},
		Seen: func(one object) input { return distribute.ObstacleSeen{Watch: of, Object: one} },
		Left: func(one object) input { return distribute.ObstacleGone{Watch: of, Object: one} },
		Changed: func(_ string, now watchset.Status) input {
			return distribute.ObstacleWatchChanged{Watch: of, Status: now}
		},
	}
}

// owner owns the leases of all watches of this package.
var owner = watchset.Static("distribution")

func (w *watches) acquireCopies(request watchset.Request) error {
	if _, err := w.runner.Informers.Acquire(owner, request); err != nil {
		return fmt.Errorf("watching %s: %w", request.Kind.GroupKind(), err)
	}
	return nil
}

// leaveToken leaves a token in a channel that has room for one.
func leaveToken(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is enough
	}
}

// followSoon makes runWatches call followObstacles soon.
func (w *watches) followSoon() { leaveToken(w.due) }

// followObstacles begins and ends watches of obstacles, so that exactly those exist that the State wants.
func (w *watches) followObstacles() {
	var wanted map[*distribute.ObstacleWatch]bool
	w.runner.Read(func(s *distribute.State) { wanted = s.ObstacleWatches() })
	for watch, lease := range w.leases {
		if !wanted[watch] {
			lease.Release()
			delete(w.leases, watch)
		}
	}
	for watch := range wanted {
		if w.leases[watch] != nil {
			continue
		}
		isNoCopy, hasName := selectorsOf(watch)
		lease, err := w.runner.Informers.Acquire(owner, watchset.Request{
			Resource: watch.Resource, LabelSelector: isNoCopy, FieldSelector: hasName, Sink: w.sinkOfObstacles(watch),
		})
		if err != nil {
			return // the set has stopped, because the process stops
		}
		w.leases[watch] = lease
	}
}

// selectorsOf returns the selectors of a distribution's possible obstacles. Objects without the label distributed-by
// match too.
func selectorsOf(w *distribute.ObstacleWatch) (isNoCopy labels.Selector, hasName fields.Selector) {
	notOurs, err := labels.NewRequirement(v1alpha1.LabelDistributedBy, selection.NotEquals, []string{w.Distribution})
	if err != nil {
		panic(err) // the CRD allows only names that are valid values of a label
	}
	return labels.NewSelector().Add(*notOurs), fields.OneTermEqualSelector("metadata.name", w.Name)
}
