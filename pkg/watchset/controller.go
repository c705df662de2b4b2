package watchset

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Controller is a Set as one controller uses it, so that the controller's name is written once.
type Controller struct {
	set  *Set
	name string
}

// For returns a Controller: the Set, for the controller of this name.
func (s *Set) For(controller string) Controller { return Controller{s, controller} }

// Source is Set.Source for this controller.
func (c Controller) Source(resource schema.GroupVersionResource, h handler.EventHandler, p ...predicate.Predicate) source.SyncingSource {
	return c.set.Source(c.name, resource, h, p...)
}

// States is Set.States for this controller.
func (c Controller) States() source.Source { return c.set.States(c.name) }

// EnqueueOwners is Set.EnqueueOwners for this controller.
func (c Controller) EnqueueOwners() handler.EventHandler { return c.set.EnqueueOwners(c.name) }

// Session is Set.Session for one of this controller's requests.
func (c Controller) Session(request types.NamespacedName) *Session {
	return c.set.Session(c.ownerOfRequest(request))
}

// Acquire is Set.Acquire for one of this controller's requests.
func (c Controller) Acquire(request types.NamespacedName, r Request) (*Lease, error) {
	return c.set.Acquire(c.ownerOfRequest(request), r)
}

// Release is Set.Release for one of this controller's requests.
func (c Controller) Release(request types.NamespacedName) { c.set.Release(c.ownerOfRequest(request)) }

func (c Controller) ownerOfRequest(request types.NamespacedName) Owner {
	return Owner{Controller: c.name, NamespacedName: request}
}

// Static returns an Owner for informers that a program needs as long as it runs, independently of any object. No
// controller reconciles such an owner.
func Static(name string) Owner {
	return Owner{Controller: "static", NamespacedName: types.NamespacedName{Name: name}}
}

// Client returns a client whose Get and List are those of the session's Reader, and whose other methods are writer's.
func (x *Session) Client(writer client.Client, o ...ReaderOption) client.Client {
	return &sessionClient{Client: writer, reader: x.Reader(o...)}
}

type sessionClient struct {
	client.Client
	reader client.Reader
}

// Get implements client.Reader, and so does List.
func (c *sessionClient) Get(ctx context.Context, key client.ObjectKey, out client.Object, o ...client.GetOption) error {
	return c.reader.Get(ctx, key, out, o...)
}

func (c *sessionClient) List(ctx context.Context, out client.ObjectList, o ...client.ListOption) error {
	return c.reader.List(ctx, out, o...)
}

// GetAs is Lease.Get for a lease that holds objects of type T: the Go type of its kind, *unstructured.Unstructured, or
// *metav1.PartialObjectMetadata. For any other T it returns ErrInvalid. The object is shared: callers must not change it.
func GetAs[T client.Object](l *Lease, key types.NamespacedName) (T, error) {
	object, err := l.Get(key)
	if object == nil {
		var none T
		return none, err
	}
	typed, problem := convertObject[T](object)
	if problem != nil {
		return typed, problem
	}
	return typed, err
}

// ListAs is Lease.List for a lease that holds objects of type T, as GetAs is Lease.Get.
func ListAs[T client.Object](l *Lease, namespace string, sel labels.Selector) ([]T, error) {
	objects, err := l.List(namespace, sel)
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		typed, problem := convertObject[T](object)
		if problem != nil {
			return nil, problem
		}
		all = append(all, typed)
	}
	return all, err
}

func convertObject[T client.Object](object client.Object) (T, error) {
	typed, ok := object.(T)
	if !ok {
		return typed, fmt.Errorf("%w: the lease holds objects of type %T, not %T", ErrInvalid, object, typed)
	}
	return typed, nil
}
