package copies

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// followPause is how long changes of the forest are gathered before the watches of narrow kinds (see
// copyengine.Kind.IsNarrow) follow them together.
const followPause = 50 * time.Millisecond

// watches follow the configured kinds, each in its scope, and apply what they show.
type watches struct {
	set      *watchset.Set
	apply    func(copyengine.Input)
	followed *watchset.NamespaceSet
	due      chan struct{} // has room for one signal: the followed namespaces may have changed
}

func newWatches(set *watchset.Set, apply func(copyengine.Input)) *watches {
	return &watches{set: set, apply: apply, followed: watchset.NewNamespaceSet(), due: make(chan struct{}, 1)}
}

var selectors = map[copyengine.Role]string{
	copyengine.SourcesAndCopies: "",
	copyengine.SourcesAlone:     v1alpha1.LabelPropagate,
	copyengine.CopiesAlone:      v1alpha1.LabelInheritedFrom,
}

// runWatches watches these kinds until ctx is done.
func (w *watches) runWatches(ctx context.Context, kinds []copyengine.Kind) error {
	var running sync.WaitGroup
	if slices.ContainsFunc(kinds, copyengine.Kind.IsNarrow) {
		w.apply(copyengine.FollowDue{})
		running.Go(func() { w.keepFollowing(ctx) })
	}
	for _, kind := range kinds {
		for _, role := range kind.Roles() {
			if err := w.acquireKind(kind, role); err != nil {
				return err
			}
		}
	}
	<-ctx.Done()
	running.Wait()
	return nil
}

func (w *watches) acquireKind(kind copyengine.Kind, role copyengine.Role) error {
	selector, err := labels.Parse(selectors[role])
	if err != nil {
		return err
	}
	scope := watchset.Cluster()
	switch kind.Scope {
	case copyengine.Namespaces:
		scope = watchset.Namespaces(w.followed)
	case copyengine.Auto:
		scope = watchset.Auto(w.followed)
	}
	_, err = w.set.Acquire(watchset.Static("copies"), watchset.Request{
		Kind: kind.GroupVersionKind, Scope: scope, LabelSelector: selector,
		Sink: w.newSink(copyengine.Watch{Kind: kind.GroupKind(), Role: role}),
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", kind.GroupKind(), err)
	}
	return nil
}

func (w *watches) newSink(of copyengine.Watch) watchset.Sink {
	type object = *metav1.PartialObjectMetadata
	return &copying.Sink[copyengine.Input, object]{
		Apply: w.apply,
		Listed: func(namespace, resourceVersion string, all []object) copyengine.Input {
			return copyengine.Listed{Watch: of, Namespace: namespace, ResourceVersion: resourceVersion, Objects: all}
		},
		Seen: func(one object) copyengine.Input { return copyengine.ObjectSeen{Watch: of, Object: one} },
		Left: func(one object) copyengine.Input { return copyengine.ObjectGone{Watch: of, Object: one} },
		Changed: func(namespace string, now watchset.Status) copyengine.Input {
			return copyengine.WatchChanged{Watch: of, Namespace: namespace, Status: now}
		},
	}
}

// followSoon makes the watches of narrow kinds follow the forest soon.
func (w *watches) followSoon() {
	select {
	case w.due <- struct{}{}:
	default: // a signal waits already
	}
}

func (w *watches) keepFollowing(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.due:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPause):
		}
		w.apply(copyengine.FollowDue{})
	}
}
