package watchset

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const defaultSyncTimeout = 10 * time.Second

// ReaderOption changes how a Session's Reader reads.
type ReaderOption func(*reader)

// GetByNamespace makes Get lease the object's whole namespace, for owners that read many objects there.
func GetByNamespace() ReaderOption { return func(r *reader) { r.byNamespace = true } }

// SyncTimeout sets how long a read waits for its informer before it returns ErrNotSynced; the default is 10s.
func SyncTimeout(d time.Duration) ReaderOption { return func(r *reader) { r.timeout = d } }

// reader implements client.Reader.
type reader struct {
	session     *Session
	byNamespace bool
	timeout     time.Duration
}

// Get implements client.Reader.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	request, gvk, err := r.requestForRead(ctx, out)
	if err != nil {
		return err
	}
	request.Scope = Object(key.Namespace, key.Name)
	if r.byNamespace {
		request.Scope = Namespace(key.Namespace)
		if key.Namespace == "" {
			request.Scope = Cluster()
		}
	}
	l, err := r.acquireSyncedLease(ctx, request)
	if err != nil {
		return err
	}
	found, err := l.Get(key)
	if err != nil {
		return err
	}
	return copyObjectInto(out, found, gvk)
}

// List implements client.Reader.
func (r *reader) List(ctx context.Context, out client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	name, err := nameInFieldSelector(o)
	if err != nil {
		return err
	}
	request, gvk, err := r.requestForRead(ctx, out)
	if err != nil {
		return err
	}
	if o.Namespace != "" {
		request.Scope = Namespace(o.Namespace)
	}
	l, err := r.acquireSyncedLease(ctx, request)
	if err != nil {
		return err
	}
	found, err := l.List(o.Namespace, o.LabelSelector)
	if err != nil {
		return err
	}
	items := make([]runtime.Object, 0, len(found))
	for _, object := range found {
		if name != "" && object.GetName() != name {
			continue
		}
		if o.Limit > 0 && int64(len(items)) == o.Limit {
			break
		}
		item, err := newItemOfList(out)
		if err != nil {
			return err
		}
		if err := copyObjectInto(item, object, gvk); err != nil {
			return err
		}
		items = append(items, item)
	}
	return meta.SetList(out, items)
}

// nameInFieldSelector returns the name that a field selector of metadata.name asks for, "" without a field selector. It
// returns ErrInvalid for all other field selectors and for Continue, which a store can't answer.
func nameInFieldSelector(o *client.ListOptions) (string, error) {
	if o.Continue != "" {
		return "", fmt.Errorf("%w: continue is not supported, because each list is complete", ErrInvalid)
	}
	if o.FieldSelector == nil || o.FieldSelector.Empty() {
		return "", nil
	}
	requirements := o.FieldSelector.Requirements()
	name, exact := o.FieldSelector.RequiresExactMatch("metadata.name")
	if !exact || len(requirements) != 1 {
		return "", fmt.Errorf("%w: fieldSelector %q is not supported: only metadata.name=NAME is", ErrInvalid, o.FieldSelector)
	}
	return name, nil
}

// requestForRead returns the Request for a read into out, and the kind of the objects. The caller sets the Request's
// scope.
func (r *reader) requestForRead(ctx context.Context, out runtime.Object) (Request, schema.GroupVersionKind, error) {
	scheme := r.session.set.options.Scheme
	if scheme == nil {
		scheme = runtime.NewScheme()
	}
	gvk, err := apiutil.GVKForObject(out, scheme)
	if err != nil {
		return Request{}, gvk, fmt.Errorf("%w: %w: Options.Scheme must know %T", ErrInvalid, err, out)
	}
	if _, isList := out.(client.ObjectList); isList {
		gvk.Kind = trimListSuffix(gvk.Kind)
	}
	request := Request{Form: Full}
	switch out.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		request.Form = Metadata
	}
	request.Resource, err = r.resourceOfKind(ctx, gvk)
	return request, gvk, err
}

func trimListSuffix(kind string) string {
	if n := len(kind) - len("List"); n > 0 && kind[n:] == "List" {
		return kind[:n]
	}
	return kind
}

// acquireSyncedLease acquires a lease for a read, and waits until it is Synced or the reader's timeout has passed.
func (r *reader) acquireSyncedLease(ctx context.Context, request Request) (*Lease, error) {
	l, err := r.session.Acquire(request)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err = l.Wait(waiting)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("%w after %s: %s", ErrNotSynced, r.timeout,
			describeTarget(request.Resource, request.Scope.namespace, request.Scope.name))
	}
	return l, err
}

// resourceOfKind returns the resource of a kind. For a kind that isn't served it guesses the plural, so that the lease
// is NotServed until the kind is served.
func (r *reader) resourceOfKind(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	s := r.session.set
	if s.options.Mapper != nil {
		mapping, err := s.options.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		switch {
		case err == nil:
			return mapping.Resource, nil
		case meta.IsNoMatchError(err):
			return guess, nil
		}
		return guess, fmt.Errorf("looking for the resource of %s: %w", gvk, err)
	}
	if known, ok := s.catalog.rememberedResource(gvk); ok {
		return known, nil
	}
	found, err := s.catalog.findKind(ctx, gvk, time.Time{})
	switch {
	case err != nil:
		return guess, fmt.Errorf("looking for the resource of %s: %w", gvk, err)
	case found == nil:
		return guess, nil
	}
	return s.catalog.rememberPlural(gvk, found.Name), nil
}

// newItemOfList returns an empty object of the type that the list holds; ErrInvalid if list is no list of objects.
func newItemOfList(list client.ObjectList) (client.Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return &unstructured.Unstructured{}, nil
	case *metav1.PartialObjectMetadataList:
		return &metav1.PartialObjectMetadata{}, nil
	}
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, fmt.Errorf("%w: %T is no list: %w", ErrInvalid, list, err)
	}
	element := reflect.TypeOf(items).Elem().Elem()
	if element.Kind() == reflect.Pointer {
		element = element.Elem()
	}
	item, ok := reflect.TypeAssert[client.Object](reflect.New(element))
	if !ok {
		return nil, fmt.Errorf("%w: the items of a %T are no API objects", ErrInvalid, list)
	}
	return item, nil
}

// copyObjectInto writes a deep copy of held, an object of an informer, into out.
func copyObjectInto(out, held client.Object, gvk schema.GroupVersionKind) error {
	if reflect.TypeOf(out) == reflect.TypeOf(held) {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(held.DeepCopyObject()).Elem())
		out.GetObjectKind().SetGroupVersionKind(gvk)
		return nil
	}
	switch out := out.(type) {
	case *unstructured.Unstructured:
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(held.DeepCopyObject())
		if err != nil {
			return err
		}
		out.Object = fields
		out.SetGroupVersionKind(gvk)
		return nil
	}
	if u, ok := held.(*unstructured.Unstructured); ok {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.DeepCopy().Object, out)
	}
	return fmt.Errorf("%w: the informer of %s holds a %T, not a %T", ErrInvalid, gvk, held, out)
}
