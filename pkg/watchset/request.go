package watchset

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owner is the reconcile.Request that needs an informer, and the controller that it belongs to.
type Owner struct {
	Controller string
	types.NamespacedName
}

// Request says what an informer is to show.
type Request struct {
	// Resource to list and watch. Its version and its resource are needed.
	Resource schema.GroupVersionResource
	// Scope is where; the zero value is Cluster().
	Scope Scope
	// Form is how much of an object is held; the zero value is Metadata.
	Form Form
	// LabelSelector and FieldSelector are applied by the server; nil selects everything.
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	// Sink, if it is set, gets what the informers show, as the server sent it, in place of a store: reads of such a lease are
	// ErrInvalid. It must be comparable, such as a pointer; informers with different sinks are not shared.
	Sink Sink
}

// Form is how much of an object is held.
type Form string

// Forms of objects. Metadata gives *metav1.PartialObjectMetadata. Full gives the Go type where Options.Scheme knows the kind,
// else *unstructured.Unstructured.
const (
	Metadata Form = ""
	Full     Form = "Full"
)

// String returns the form as metrics have it.
func (f Form) String() string {
	if f == Full {
		return "full"
	}
	return "metadata"
}

// Scope is where a lease looks.
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

// Cluster is all namespaces, and the only scope besides Object for a cluster-scoped resource.
func Cluster() Scope { return Scope{} }

// Namespace is one namespace, whatever its UID.
func Namespace(namespace string) Scope { return Scope{kind: namespaceScope, namespace: namespace} }

// Object is one object, by a field selector for metadata.name: it works with resourceNames in RBAC. A cluster-scoped object has
// an empty namespace.
func Object(namespace, name string) Scope {
	return Scope{kind: objectScope, namespace: namespace, name: name}
}

// Namespaces has one informer per namespace of set.
func Namespaces(set *NamespaceSet) Scope { return Scope{kind: namespacesScope, set: set} }

// Auto is cluster-wide while that is allowed, else like Namespaces(set).
func Auto(set *NamespaceSet) Scope { return Scope{kind: autoScope, set: set} }

// String describes the scope as metrics and logs have it: cluster, namespace, object; namespaces and auto for leases alone.
func (s Scope) String() string {
	return [...]string{"cluster", "namespace", "object", "namespaces", "auto"}[s.kind]
}

// view is what of a resource an informer shows; a place says where.
type view struct {
	resource       schema.GroupVersionResource
	form           Form
	labels, fields string
	sink           Sink
}

// place is the scope of a part: cluster, namespace or object. A UID is that of the namespace, where it is known.
type place struct {
	kind            scopeKind
	namespace, name string
	uid             types.UID
}

// partKey says which leases share a part.
type partKey struct {
	view
	place
}

// requestKey says which requests of an owner are equal.
type requestKey struct {
	view
	scope Scope
}

func (k partKey) compare(other partKey) int {
	return cmp.Or(cmp.Compare(k.resource.Group, other.resource.Group), cmp.Compare(k.resource.Resource, other.resource.Resource),
		cmp.Compare(k.resource.Version, other.resource.Version), cmp.Compare(k.kind, other.kind),
		cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name), cmp.Compare(k.form, other.form),
		cmp.Compare(k.labels, other.labels), cmp.Compare(k.fields, other.fields), cmp.Compare(k.uid, other.uid))
}

// key checks a request and returns what it has in common with equal ones.
func (r Request) key() (requestKey, error) {
	bad := func(format string, args ...any) (requestKey, error) {
		return requestKey{}, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
	k := requestKey{view: view{resource: r.Resource, form: r.Form, sink: r.Sink}, scope: r.Scope}
	switch {
	case r.Resource.Version == "":
		return bad("resource.version is empty")
	case r.Resource.Resource == "":
		return bad("resource.resource is empty")
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
				return bad("fieldSelector names metadata.name, which scope does")
			}
		}
	}
	return k, nil
}
