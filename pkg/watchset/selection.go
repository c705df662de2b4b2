package watchset

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selection is what a part lists and watches, and in which form the part keeps it. Only its target ever changes, and
// that only while no run uses it. It needs no lock.
type selection struct {
	key     partKey
	request Request
	target  atomic.Pointer[target]
	options *Options
	// gets the objects, in place of store and feeds; set for the parts that the Set watches for itself
	observer func(change, ...client.Object)
	trim     func(client.Object) client.Object // returns the smaller object that the observer gets
}

// isWatchedForSet reports whether the Set watches the part for itself: the kinds of RBAC, and CRDs.
func (sel *selection) isWatchedForSet() bool { return sel.observer != nil }

// withSelectors returns o with the selection's label and field selectors. For an Object scope it adds a field selector
// for metadata.name.
func (sel *selection) withSelectors(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = sel.key.labels, sel.key.fields
	if sel.key.kind == objectScope {
		named := fields.OneTermEqualSelector("metadata.name", sel.key.name)
		if f := sel.request.FieldSelector; f != nil {
			named = fields.AndSelectors(named, f)
		}
		o.FieldSelector = named.String()
	}
	return o
}

// onlyName returns the one name that the selection can match, "" if there may be more. The API server takes it from the
// field selector of a list or watch, so that resourceNames may allow these.
func (sel *selection) onlyName() string {
	if f := sel.request.FieldSelector; sel.key.kind != objectScope && f != nil {
		name, _ := f.RequiresExactMatch("metadata.name")
		return name
	}
	return sel.key.name
}

// listForWatch returns what a watch begins with: the selection's objects or, for a request FromNow, only the
// resourceVersion of an empty list.
func (sel *selection) listForWatch(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if !sel.key.fromNow {
		return sel.listSelectedObjects(ctx, o)
	}
	// A list at resourceVersion 0 would come whole, whatever its limit.
	answer, err := sel.listSelectedObjects(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	list, err := meta.ListAccessor(answer)
	if err != nil {
		return nil, err
	}
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	return answer, meta.SetList(answer, nil)
}

// IsWatchListSemanticsUnSupported tells the reflector whether it may ask a watch for all objects that exist, in place of
// a list.
func (sel *selection) IsWatchListSemanticsUnSupported() bool {
	if sel.key.fromNow {
		return true
	}
	has, ok := sel.target.Load().client.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && has.IsWatchListSemanticsUnSupported()
}

// listSelectedObjects lists the selection's objects.
func (sel *selection) listSelectedObjects(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return sel.target.Load().client.List(ctx, sel.key.namespace, sel.withSelectors(o))
}

// openSelectionWatch opens a watch on the selection's objects.
func (sel *selection) openSelectionWatch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return sel.target.Load().client.Watch(ctx, sel.key.namespace, sel.withSelectors(o))
}

// tryOpeningWatch opens a watch and closes it at once.
func (sel *selection) tryOpeningWatch(ctx context.Context) error {
	second := int64(1)
	w, err := sel.openSelectionWatch(ctx, metav1.ListOptions{TimeoutSeconds: &second})
	if err == nil {
		w.Stop()
	}
	return err
}

// tryDeniedVerbs tries the verbs that a review denied while an authorizer reported an error: a list of one object, a
// watch of one second. It returns the verbs that the server really refuses, and an error where a request failed for
// another reason.
func (sel *selection) tryDeniedVerbs(ctx context.Context, denied []string) (missing []string, doubt error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	for _, verb := range denied {
		var err error
		if verb == "list" {
			_, err = sel.listSelectedObjects(ctx, metav1.ListOptions{Limit: 1})
		} else {
			err = sel.tryOpeningWatch(ctx)
		}
		if apierrors.IsForbidden(err) {
			missing = append(missing, verb)
		} else if err != nil {
			doubt = err
		}
	}
	return missing, doubt
}

// checkServedResource returns a *NotServedError if the server doesn't serve the resource (served is nil), or serves a
// cluster-scoped resource where the selection is in a namespace; else nil.
func (sel *selection) checkServedResource(served *metav1.APIResource) error {
	switch {
	case served == nil:
		return sel.newNotServedError("")
	case !served.Namespaced && sel.key.namespace != "":
		return sel.newNotServedError("the resource is cluster-scoped, and has no objects in namespaces")
	}
	return nil
}

// newForbiddenError returns the error of a part for which these verbs are not allowed.
func (sel *selection) newForbiddenError(missing []string, cause error) *ForbiddenError {
	slices.Sort(missing)
	return &ForbiddenError{Resource: sel.targetResource(), Namespace: sel.key.namespace, Name: sel.key.name, Missing: slices.Compact(missing),
		Cause: cause}
}

// prepareObject returns an object of the reflector as a part keeps it: decoded, and transformed unless the request has
// a Sink. An object of the Set's own parts is trimmed instead.
func (sel *selection) prepareObject(obj any) (client.Object, error) {
	if done, ok := obj.(stored); ok {
		return done.Object, nil
	}
	object, err := sel.decodeToFormType(obj.(runtime.Object))
	if err != nil {
		return nil, err
	}
	if sel.isWatchedForSet() {
		return sel.trim(object), nil
	}
	if trimmer, trims := sel.key.sink.(Trimmer); trims {
		return trimmer.Trim(object), nil
	}
	if sel.key.sink != nil {
		return object, nil
	}
	if transform, ok := sel.options.Transform[sel.targetResource()]; ok {
		return transform(object), nil
	}
	return DefaultTransform(object), nil
}

// decodeToFormType returns an object from a list or watch in the Go type that the form promises, with its kind set. For
// Full this is the Scheme's type where the Scheme knows the kind.
func (sel *selection) decodeToFormType(obj runtime.Object) (client.Object, error) {
	object, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("the server sent a %T, which is no object", obj)
	}
	scheme := sel.options.Scheme
	if typed, ok := sel.target.Load().client.(*typedClient); ok {
		object.GetObjectKind().SetGroupVersionKind(typed.kind)
		return object, nil
	}
	u, ok := object.(*unstructured.Unstructured)
	if !ok || scheme == nil || !scheme.Recognizes(u.GroupVersionKind()) {
		return object, nil
	}
	made, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	result, ok := made.(client.Object)
	if !ok {
		return object, nil
	}
	return result, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, result)
}

// newObjectStore returns a store that finds objects by namespace/name, and for a cluster-wide selection also by
// namespace.
func (sel *selection) newObjectStore(objects []client.Object) cache.Indexer {
	indexers := cache.Indexers{}
	if sel.key.kind == clusterScope {
		indexers[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	items := make([]any, len(objects))
	for i, object := range objects {
		items[i] = object
	}
	_ = store.Replace(items, "")
	return store
}
