package distribution

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// watches follows ResourceDistributions and, once their CRD exists, the copies of every configured kind.
type watches struct {
	settings *Settings
	set      *watchset.Set
	runs     *runs
	kinds    *kinds
	copies   *copyTable
	queue    *queue
}

// owner owns the leases of all watches of this package.
var owner = watchset.Static("distribution")

// run follows everything until ctx is done. The copies are not followed before the CRD exists, which a component installs. When the CRD is
// deleted, the watches of copies go on, so that the copies that stay are unlocked.
func (w *watches) run(ctx context.Context) error {
	w.runs.setServed(true, time.Now()) // until the watch says otherwise
	sink := &distributionSink{distributionFeed: &distributionFeed{w.settings, w.runs, w.copies, w.queue}, served: make(chan struct{}, 1)}
	_, err := w.set.Acquire(owner, watchset.Request{Kind: v1alpha1.GroupVersion.WithKind(distribute.Kind), Form: watchset.Full, Sink: sink})
	if err != nil {
		return fmt.Errorf("watching ResourceDistributions: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-sink.served:
	}
	ofCopies, err := labels.Parse(v1alpha1.LabelDistributedBy)
	if err != nil {
		return err
	}
	for _, kind := range w.kinds.list() {
		_, err := w.set.Acquire(owner, watchset.Request{Kind: kind.GroupVersionKind, LabelSelector: ofCopies, Sink: &copySink{w, kind}})
		if err != nil {
			return fmt.Errorf("watching copies of %s: %w", kind.GroupKind(), err)
		}
	}
	<-ctx.Done()
	return nil
}

// distributionSink takes what the watch of ResourceDistributions shows. It implements watchset.Sink.
type distributionSink struct {
	*distributionFeed
	served chan struct{} // gets a token when the CRD exists
}

// Replace implements watchset.Sink, and so do the next three.
func (s *distributionSink) Replace(_, _ string, all []client.Object) {
	list := make([]*v1alpha1.ResourceDistribution, 0, len(all))
	for _, object := range all {
		list = append(list, object.(*v1alpha1.ResourceDistribution))
	}
	s.replace(list)
}

func (s *distributionSink) Put(object client.Object) {
	s.put(object.(*v1alpha1.ResourceDistribution))
}

func (s *distributionSink) Gone(object client.Object) {
	s.gone(object.(*v1alpha1.ResourceDistribution))
}

func (s *distributionSink) State(_ string, now watchset.Status) {
	switch {
	case now.State == watchset.NotServed:
		if s.runs.isSynced() { // the CRD was deleted, and all objects with it
			s.replace(nil)
		}
		s.runs.setServed(false, time.Now())
	case now.Resource.Resource != "":
		s.runs.setServed(true, time.Now())
		select {
		case s.served <- struct{}{}:
		default: // one token is enough
		}
	}
}

// copySink takes what the watch of one kind's copies shows. It implements watchset.Sink.
type copySink struct {
	watches *watches
	kind    *kind
}

// Replace implements watchset.Sink, and so do the next three.
func (s *copySink) Replace(_, _ string, all []client.Object) {
	s.watches.queue.add(s.watches.copies.replaceCopies(s.kind.GroupKind(), metadataOf(all))...)
}

func (s *copySink) Put(object client.Object) {
	s.watches.queue.add(s.watches.copies.putCopy(s.kind.GroupKind(), object.(*metav1.PartialObjectMetadata))...)
}

func (s *copySink) Gone(object client.Object) {
	s.watches.queue.add(s.watches.copies.removeCopy(s.kind.GroupKind(), object.(*metav1.PartialObjectMetadata))...)
}

func (s *copySink) State(_ string, now watchset.Status) {
	if now.Resource.Resource != "" {
		s.watches.kinds.setResource(s.kind, now.Resource)
	}
	s.watches.setState(s.kind, now)
}

func metadataOf(all []client.Object) []*metav1.PartialObjectMetadata {
	list := make([]*metav1.PartialObjectMetadata, 0, len(all))
	for _, object := range all {
		list = append(list, object.(*metav1.PartialObjectMetadata))
	}
	return list
}

// setState takes in the status of the watch on a kind's copies and, if that is new, queues all distributions that depend on it.
func (w *watches) setState(k *kind, now watchset.Status) {
	state, changed := w.kinds.setState(k, now)
	if !changed {
		return
	}
	if state == copies.KindDegraded {
		ctrl.Log.WithName("distribution").Info("the API server has not listed the copies of this kind: nothing of it is distributed until it does", "kind", k.GroupKind().String())
	}
	w.queue.add(w.findDependents(k.GroupKind())...)
}

// findDependents returns the keys of the distributions of a kind, and of deleted ones that have left copies of that kind.
func (w *watches) findDependents(gk schema.GroupKind) []key {
	var keys []key
	for _, r := range w.runs.list() {
		if t := r.distribution().Template; t != nil && t.Kind.GroupKind() == gk {
			keys = append(keys, key{distribution: r.name})
		}
	}
	for name := range w.copies.findWriters(&gk) {
		if w.runs.find(name) == nil {
			keys = append(keys, key{distribution: name})
		}
	}
	return keys
}
