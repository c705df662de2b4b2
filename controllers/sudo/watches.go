package sudo

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// owner owns the leases of the watches of this package.
var owner = watchset.Static("sudo")

// runWatches follows the requests and, once component requests serves them and gives the operator its rights, what was made of them.
func (r *Reconciler) runWatches(ctx context.Context) error {
	if err := r.acquire(watchset.Request{
		Kind: v1alpha1.GroupVersion.WithKind("SudoRequest"), Form: watchset.Full, Sink: r.sinkOfRequests(),
	}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.served:
	}
	r.Served(ctx)
	for _, watch := range []struct {
		resource schema.GroupVersionResource
		table    *mirror.Table[*metav1.PartialObjectMetadata, grant]
	}{
		{batchv1.SchemeGroupVersion.WithResource("jobs"), r.known.timers},
		{rbacv1.SchemeGroupVersion.WithResource("rolebindings"), r.known.bindings},
	} {
		if err := r.acquire(watchset.Request{
			Resource: watch.resource, Scope: watchset.Namespace(v1alpha1.SudoNamespace), Sink: r.sinkOfGrants(watch.table),
			LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelAccess: v1alpha1.AccessRequest}),
		}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

func (r *Reconciler) acquire(request watchset.Request) error {
	if _, err := r.Informers.Acquire(owner, request); err != nil {
		return fmt.Errorf("watching for sudo on request: %w", err)
	}
	return nil
}

// input takes in what a watch has shown, and returns the requests to look at.
type input func() []types.NamespacedName

// applyInput applies an input, and then queues what it returns: nothing else is called while the lock is held.
func (r *Reconciler) applyInput(take input) {
	r.known.mu.Lock()
	places := take()
	r.known.mu.Unlock()
	r.queue(places...)
}

func (r *Reconciler) queue(places ...types.NamespacedName) {
	for _, place := range places {
		r.again.Add(reconcile.Request{NamespacedName: place})
	}
}

func (r *Reconciler) sinkOfRequests() watchset.Sink {
	type object = *v1alpha1.SudoRequest
	left := func(place mirror.Place, was *request) []types.NamespacedName {
		if was == nil {
			return nil
		}
		return []types.NamespacedName{place, {Namespace: v1alpha1.SudoNamespace, Name: string(was.uid)}}
	}
	return &copying.Sink[input, object]{
		Apply: r.applyInput,
		Listed: func(namespace, version string, all []object) input {
			return func() (places []types.NamespacedName) {
				for _, c := range r.known.requests.List(namespace, version, all) {
					places = append(places, left(c.Place, c.Was)...)
				}
				for _, one := range all {
					places = append(places, types.NamespacedName{Namespace: one.Namespace, Name: one.Name})
				}
				return places
			}
		},
		Seen: func(one object) input {
			return func() []types.NamespacedName {
				r.known.requests.Show(one)
				return []types.NamespacedName{{Namespace: one.Namespace, Name: one.Name}}
			}
		},
		Left: func(one object) input {
			return func() []types.NamespacedName {
				c, changed := r.known.requests.End(one)
				if !changed {
					return nil
				}
				return left(c.Place, c.Was)
			}
		},
		Changed: func(namespace string, now watchset.Status) input {
			return func() []types.NamespacedName {
				if now.State != watchset.NotServed && now.Resource.Resource != "" {
					r.isServed()
				}
				setBlind(r.known.requests, namespace, now)
				return nil
			}
		},
	}
}

// setBlind takes in that a watch shows nothing.
func setBlind[O metav1.Object, V any](table *mirror.Table[O, V], namespace string, now watchset.Status) {
	if now.State == watchset.Pending || now.State == watchset.Forbidden || now.State == watchset.NotServed {
		table.SetBlind(namespace, string(now.State))
	}
}

func (r *Reconciler) sinkOfGrants(table *mirror.Table[*metav1.PartialObjectMetadata, grant]) watchset.Sink {
	type object = *metav1.PartialObjectMetadata
	// The request may not be known yet, so the lock is given back before it is looked for.
	queue := func(all ...object) {
		for _, one := range all {
			r.queue(r.known.findPlace(types.UID(one.Name), one.Labels[v1alpha1.LabelTenant]))
		}
	}
	return &copying.Sink[func(), object]{
		Apply: func(take func()) { take() },
		Listed: func(namespace, version string, all []object) func() {
			return func() {
				r.known.mu.Lock()
				gone := table.List(namespace, version, all)
				r.known.mu.Unlock()
				for _, c := range gone {
					if c.Is == nil {
						r.queue(r.known.findPlace(types.UID(c.Place.Name), c.Was.tenant))
					}
				}
				queue(all...)
			}
		},
		Seen: func(one object) func() {
			return func() {
				r.known.mu.Lock()
				table.Show(one)
				r.known.mu.Unlock()
				queue(one)
			}
		},
		Left: func(one object) func() {
			return func() {
				r.known.mu.Lock()
				table.End(one)
				r.known.mu.Unlock()
				queue(one)
			}
		},
		Changed: func(namespace string, now watchset.Status) func() {
			return func() {
				r.known.mu.Lock()
				setBlind(table, namespace, now)
				r.known.mu.Unlock()
			}
		},
	}
}
