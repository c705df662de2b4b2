package exporter

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/apiserver"
)

// source is the cache.ReflectorStore of a watch on one kind. It passes each object's reservation to the meter, and keeps no objects.
type source struct {
	by *measurer
	// kind is the resource's name in the API, and stands before the UIDs of its objects.
	kind     string
	object   runtime.Object
	list     func() apiserver.List
	reserves func(object any) billing.Reserved

	// The measurer's mu guards the fields below. synced says that a complete list was read once. failure is why the watch fails;
	// nil while it works.
	synced  bool
	failure error
}

func (m *measurer) newSources(gpus []string) []*source {
	return []*source{
		{by: m, kind: "pods", object: &corev1.Pod{}, list: func() apiserver.List { return &corev1.PodList{} },
			reserves: func(object any) billing.Reserved { return podReserves(object.(*corev1.Pod), gpus) }},
		{by: m, kind: "persistentvolumeclaims", object: &corev1.PersistentVolumeClaim{},
			list:     func() apiserver.List { return &corev1.PersistentVolumeClaimList{} },
			reserves: func(object any) billing.Reserved { return claimReserves(object.(*corev1.PersistentVolumeClaim)) }},
	}
}

// follow watches until ctx ends.
func (s *source) follow(ctx context.Context, api apiserver.Reader) {
	toolscache.NewReflectorWithOptions(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := s.list()
			err := api.List(ctx, list, o)
			s.note(ctx, "listing", err, false)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := api.Watch(ctx, s.list(), o)
			s.note(ctx, "watching", err, true)
			return w, err
		},
	}, s.object, s, toolscache.ReflectorOptions{Name: "usage"}).RunWithContext(ctx)
}

// note stores why a request failed, or that the watch works again. A list that succeeds doesn't clear the failure; only a watch does.
func (s *source) note(ctx context.Context, doing string, err error, follows bool) {
	if ctx.Err() != nil {
		return
	}
	defer s.by.hold()()
	switch {
	case err != nil:
		s.failure = fmt.Errorf("%s %s: %w", doing, s.kind, err)
	case follows:
		s.failure = nil
	}
}

// Add implements cache.ReflectorStore.
func (s *source) Add(object any) error {
	defer s.by.hold()()
	s.set(object)
	return nil
}

// Update implements cache.ReflectorStore.
func (s *source) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *source) Delete(object any) error {
	defer s.by.hold()()
	s.by.meter.Set(s.id(object), billing.Reservation{}, s.by.now())
	return nil
}

// Replace implements cache.ReflectorStore. What is not in the list is gone.
func (s *source) Replace(objects []any, _ string) error {
	defer s.by.hold()()
	there := make(map[string]bool, len(objects))
	for _, object := range objects {
		there[s.set(object)] = true
	}
	for id := range s.by.meter.Holders {
		if strings.HasPrefix(id, s.kind+"/") && !there[id] {
			s.by.meter.Set(id, billing.Reservation{}, s.by.now())
		}
	}
	s.synced = true
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *source) Resync() error { return nil }

// Transformer implements cache.TransformingStore. It slims each object as it is read, because the reflector keeps the whole first
// list in memory.
func (s *source) Transformer() toolscache.TransformFunc {
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			slimPod(pod)
		}
		return object, nil
	}
}

func (s *source) set(object any) (id string) {
	id = s.id(object)
	namespace := object.(metav1.Object).GetNamespace()
	s.by.meter.Set(id, billing.Reservation{Namespace: strings.Clone(namespace), Reserved: s.reserves(object)}, s.by.now())
	return id
}

func (s *source) id(object any) string { return s.kind + "/" + string(object.(metav1.Object).GetUID()) }
