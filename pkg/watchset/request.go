package watchset

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owner names what needs an informer: a controller, and one of its reconcile.Requests.
type Owner struct {
	Controller string
	types.NamespacedName
}

// Request states which objects an informer shows, and in which form.
type Request struct {
	// Resource to list and watch. Its version and its resource are needed.
	Resource schema.GroupVersionResource
	// Kind to list and watch, in place of Resource. An empty version means the one that the server prefers. The Set
	// asks discovery for the kind's resource, and asks again after the server has stopped serving the kind. For a kind
	// of a CRD without a version it also asks again at each regular check of rights. If the identity may watch CRDs, it
	// asks when a CRD of the group changes, too. If the server prefers another version then, the informer changes over
	// to that one without leaving its state. Status names the resource.
	Kind schema.GroupVersionKind
	// Scope limits the Request to namespaces or to one object; the zero value is Cluster().
	Scope Scope
	// Form is how much of an object is held; the zero value is Metadata.
	Form Form
	// LabelSelector and FieldSelector are applied by the server; nil selects everything.
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	// Sink, if it is set, gets the objects as the server sent them. The Set then keeps no store: reads of such a lease
	// return ErrInvalid. A Sink must be comparable, such as a pointer; informers with different Sinks are not shared.
	Sink Sink
	// FromNow, which needs a Sink, shows what happens from now on, for objects that are looked at and not kept, such as
	// Events: Replace gets no objects, and whatever exists at the start is neither listed nor held.
	FromNow bool
}

// Form is how much of an object is held.
type Form string

// Forms of objects. An object in form Metadata is a *metav1.PartialObjectMetadata. An object in form Full has its Go
// type if Options.Scheme knows the kind; otherwise it is an *unstructured.Unstructured.
const (
	Metadata Form = ""
	Full     Form = "Full"
)

// String returns the form's value in metrics: "full" or "metadata".
func (f Form) String() string {
	if f == Full {
		return "full"
	}
	return "metadata"
}

// Scope says in which namespaces, or for which object, a lease has informers.
type Scope struct {
	kind            scopeKind
	namespace, name string
	set             *NamespaceSet
}

type scopeKind int8

const (
	clusterScope scopeKind = iota
	namespaceScope
	objectScope
	namespacesScope
	autoScope
)

// Cluster returns the scope of all namespaces. For a cluster-scoped resource, use it or Object.
func Cluster() Scope { return Scope{} }

// Namespace returns the scope of one namespace, whatever its UID.
func Namespace(namespace string) Scope { return Scope{kind: namespaceScope, namespace: namespace} }

// Object returns the scope of one object. Its informer has a field selector for metadata.name, and so needs no more
// than a rule of RBAC with resourceNames. namespace is "" for a cluster-scoped object.
func Object(namespace, name string) Scope {
	return Scope{kind: objectScope, namespace: namespace, name: name}
}

// Namespaces returns a scope with one informer per namespace of set.
func Namespaces(set *NamespaceSet) Scope { return Scope{kind: namespacesScope, set: set} }

// Auto returns a scope that is the whole cluster while the identity may list and watch there, and otherwise is like
// Namespaces(set).
func Auto(set *NamespaceSet) Scope { return Scope{kind: autoScope, set: set} }

// String returns the scope's name in metrics and logs: cluster, namespace or object. Only the scope of a lease can be
// namespaces or auto.
func (s Scope) String() string {
	return [...]string{"cluster", "namespace", "object", "namespaces", "auto"}[s.kind]
}

// view states which objects of a resource an informer shows, and in which form. A place states in which namespace.
type view struct {
	resource       schema.GroupVersionResource
	gvk            schema.GroupVersionKind // instead of resource, if the request names a kind
	form           Form
	labels, fields string
	sink           Sink
	fromNow        bool
}

// place is the scope of a part: cluster, namespace or object. uid is the UID of the namespace, "" where it isn't known.
type place struct {
	kind            scopeKind
	namespace, name string
	uid             types.UID
}

// partKey identifies a part. Leases share parts with equal keys.
type partKey struct {
	view
	place
}

// requestKey identifies a request: equal requests of an owner have the same key.
type requestKey struct {
	view
	scope Scope
}

func (k partKey) comparePartKeys(other partKey) int {
	return cmp.Or(cmp.Compare(k.resource.Group, other.resource.Group), cmp.Compare(k.resource.Resource, other.resource.Resource),
		cmp.Compare(k.resource.Version, other.resource.Version), cmp.Compare(k.gvk.Group, other.gvk.Group),
		cmp.Compare(k.gvk.Kind, other.gvk.Kind), cmp.Compare(k.gvk.Version, other.gvk.Version), cmp.Compare(k.kind, other.kind),
		cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name), cmp.Compare(k.form, other.form),
		cmp.Compare(k.labels, other.labels), cmp.Compare(k.fields, other.fields), cmp.Compare(k.uid, other.uid))
}

// validatedKey returns the key by which an owner's equal requests share a lease. It returns ErrInvalid, with the
// field's name, for a malformed request.
func (r Request) validatedKey() (requestKey, error) {
	bad := func(format string, args ...any) (requestKey, error) {
		return requestKey{}, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
	k := requestKey{view: view{resource: r.Resource, gvk: r.Kind, form: r.Form, sink: r.Sink, fromNow: r.FromNow}, scope: r.Scope}
	if problem := r.describeMismatch(); problem != "" {
		return bad("%s", problem)
	}
	switch {
	case r.Form != Metadata && r.Form != Full:
		return bad("form is %q: must be Metadata or Full", string(r.Form))
	case r.Scope.kind == namespaceScope && r.Scope.namespace == "":
		return bad("scope.namespace is empty: all namespaces are Cluster()")
	case r.Scope.kind == objectScope && r.Scope.name == "":
		return bad("scope.name is empty: an object has a name")
	case (r.Scope.kind == namespacesScope || r.Scope.kind == autoScope) && r.Scope.set == nil:
		return bad("scope.set is nil: a NamespaceSet is needed, an empty one if need be")
	}
	if r.LabelSelector != nil {
		if _, selectable := r.LabelSelector.Requirements(); !selectable {
			return bad("labelSelector selects nothing")
		}
		k.labels = r.LabelSelector.String()
	}
	if r.FieldSelector != nil {
		k.fields = r.FieldSelector.String()
		if k.fields == "" && !r.FieldSelector.Empty() {
			return bad("fieldSelector selects nothing")
		}
		for _, requirement := range r.FieldSelector.Requirements() {
			if r.Scope.kind == objectScope && requirement.Field == "metadata.name" {
				return bad("fieldSelector names metadata.name: use only scope.name")
			}
		}
	}
	return k, nil
}

// describeMismatch returns what is wrong with Resource and Kind, or with FromNow and Sink; "" if nothing is.
func (r Request) describeMismatch() string {
	switch {
	case r.Resource.Empty() && r.Kind.Empty():
		return "resource and kind are empty: set one of them"
	case !r.Resource.Empty() && !r.Kind.Empty():
		return "resource and kind are set: set only one of them"
	case r.Resource.Empty() && r.Kind.Kind == "":
		return "kind.kind is empty"
	case r.Kind.Empty() && r.Resource.Version == "":
		return "resource.version is empty"
	case r.Kind.Empty() && r.Resource.Resource == "":
		return "resource.resource is empty"
	case r.FromNow && r.Sink == nil:
		return "fromNow is set, and sink is nil: without a Sink nothing would see the changes"
	}
	return ""
}
