package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// seen is what an observer knows of a copy.
type seen struct {
	uid, resourceVersion, hash string
	at                         time.Time
}

// observer watches the metadata of all copies of the measured kinds, in the same way for floor and operator. It counts the events as they
// come, so that it sends no requests to find out.
type observer struct {
	watches []watch.Interface

	mu      sync.Mutex
	copies  map[string]seen // by namespace/name
	changed map[string]bool // copies whose hash has changed since the phase began
	goal    watch.EventType
	left    int
	reached chan time.Time
}

// observeIdle observes from the moment when the operator has nothing left to do.
func (b *bench) observeIdle(ctx context.Context) (*observer, error) {
	if err := b.waitForIdle(ctx); err != nil {
		return nil, err
	}
	return b.startObserver(ctx)
}

// metadataClient reads the metadata of anything as a cluster admin.
func (b *bench) metadataClient() (metadata.Interface, error) {
	return metadata.NewForConfig(b.Config(controlplane.Admin))
}

func (b *bench) startObserver(ctx context.Context) (*observer, error) {
	c, err := b.metadataClient()
	if err != nil {
		return nil, err
	}
	o := &observer{copies: map[string]seen{}, changed: map[string]bool{}, reached: make(chan time.Time, 1)}
	for _, kind := range b.scale.kinds {
		if err := o.follow(ctx, c.Resource(kind.GroupVersionResource), cmp.Or(b.label, v1alpha1.LabelInheritedFrom)); err != nil {
			o.stop()
			return nil, err
		}
	}
	return o, nil
}

// watchCopies lists the objects with a label, and watches them from that list on. The API server ends the watch of a client that falls
// behind, as may happen on a busy machine. The RetryWatcher then goes on where the watch ended.
func watchCopies(ctx context.Context, copies metadata.ResourceInterface,
	label string) (*metav1.PartialObjectMetadataList, watch.Interface, error) {
	list, err := copies.List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, nil, err
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = label
			return copies.Watch(ctx, options)
		},
	})
	return list, w, err
}

// follow observes the copies of one kind.
func (o *observer) follow(ctx context.Context, copies metadata.ResourceInterface, label string) error {
	list, w, err := watchCopies(ctx, copies, label)
	if err != nil {
		return err
	}
	o.watches = append(o.watches, w)
	for i := range list.Items {
		o.take(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	go func() {
		for event := range w.ResultChan() {
			o.take(event)
		}
	}()
	return nil
}

func (o *observer) stop() {
	for _, w := range o.watches {
		w.Stop()
	}
}

func (o *observer) take(event watch.Event) {
	meta, ok := event.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := meta.Namespace + "/" + meta.Name
	old, known := o.copies[key]
	now := seen{string(meta.UID), meta.ResourceVersion, meta.Annotations[v1alpha1.AnnotationSourceHash], time.Now()}
	counts := false
	switch event.Type {
	case watch.Added:
		counts = !known
		o.copies[key] = now
	case watch.Modified:
		counts = known && now.hash != old.hash && !o.changed[key]
		o.changed[key] = o.changed[key] || counts
		o.copies[key] = now
	case watch.Deleted:
		counts = known
		delete(o.copies, key)
	}
	if counts && event.Type == o.goal {
		if o.left--; o.left == 0 {
			o.reached <- time.Now()
		}
	}
}

// expect begins a phase. It ends with the nth event that is a goal: a copy was added, its hash changed for the first time, or it was
// deleted.
func (o *observer) expect(goal watch.EventType, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.goal, o.left, o.changed = goal, n, map[string]bool{}
}

// wait waits until the phase ends, and returns the time of its end.
func (o *observer) wait(ctx context.Context) (time.Time, error) {
	select {
	case at := <-o.reached:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case <-time.After(15 * time.Minute):
		o.mu.Lock()
		defer o.mu.Unlock()
		return time.Time{}, fmt.Errorf("after 15 min %d %s events were still missing", o.left, o.goal)
	}
}

// all returns the copies that exist, as the watches have shown them.
func (o *observer) all() map[string]seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.copies)
}
