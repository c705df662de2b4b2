package watchset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The resources that the Set watches for itself, cluster-wide: the kinds of RBAC, and CRDs. The Set reads role and subjects of
// bindings, and only the names of all other objects.
var (
	rbacKinds = []string{roleKind, roleBindingKind, clusterRoleKind, clusterRoleBindingKind}
	crdKind   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// newOwn makes a part that the Set watches for itself, so that its events poke other parts: ask for reviews of their rights.
// observer gets the objects as trim returns them, and the part stores none.
func (s *Set) newOwn(resource schema.GroupVersionResource, form Form, trim func(client.Object) client.Object, observer func(change, ...client.Object)) *part {
	p := s.newPart(partKey{view: view{resource: resource, form: form}}, Request{Resource: resource, Form: form})
	p.observer, p.trim, p.needed, p.admitted = observer, trim, true, true
	return p
}

// nameOnly returns an object that has only the namespace, name, UID and resourceVersion of the given one.
func nameOnly(object client.Object) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}}
}

// watchRBAC starts one watch for each kind of RBAC at its first call, which the first informer makes. Each has the same back-off as
// all parts, and a missing right on one kind doesn't stop the others.
func (s *Set) watchRBAC() {
	if s.rbac != nil || s.options.WatchRBAC == Off {
		return
	}
	s.rbac = []*part{} // not nil: the parts begun below call watchRBAC again
	for _, kind := range rbacKinds {
		form, trim := Metadata, nameOnly
		if kind == roleBindingKind || kind == clusterRoleBindingKind {
			form, trim = Full, s.trimBinding
		}
		var own *part
		own = s.newOwn(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: kind}, form, trim,
			func(c change, objects ...client.Object) { s.rbacChanged(own, c, objects) })
		s.rbac = append(s.rbac, own)
		own.beginRun()
	}
}

// rbacChanged pokes the parts whose rights an event may have changed. For the first list it pokes the Forbidden parts, and for a
// later list all parts, because nobody knows which events were missed.
func (s *Set) rbacChanged(own *part, c change, objects []client.Object) {
	kind := own.key.resource.Resource
	s.metrics.pokes.WithLabelValues(kind).Inc()
	if c != initial {
		s.pokeParts(s.bindings.noteChange(kind, objects[0], c == removed, s.seesBindings()))
		return
	}
	s.bindings.replaceKind(kind, objects)
	first := own.settled == ""
	for _, p := range s.parts {
		if !first || p.state == Forbidden {
			p.pokeReview(s.options.RBACDebounce)
		}
	}
}

// pokeParts pokes the parts of the given namespaces. "" among them pokes all parts, since a cluster-wide right may have changed.
func (s *Set) pokeParts(namespaces []string) {
	if slices.Contains(namespaces, "") {
		for _, p := range s.parts {
			p.pokeReview(s.options.RBACDebounce)
		}
		return
	}
	for _, namespace := range namespaces {
		for p := range s.local[namespace] {
			p.pokeReview(s.options.RBACDebounce)
		}
	}
}

// seesBindings says whether all bindings are known. If not, an event of a role may concern any part.
func (s *Set) seesBindings() bool {
	for _, p := range s.rbac {
		if p.key.form == Full && p.state != Synced {
			return false
		}
	}
	return true
}

// needCRDs starts the watch on CRDs if some part is NotServed, and lets it end after IdleGrace if none is.
func (s *Set) needCRDs() {
	switch {
	case s.options.WatchCRDs == Off || s.stopped:
	case s.unserved > 0 && (s.crds == nil || s.crds.gone):
		s.crds = s.newOwn(crdKind, Metadata, nameOnly, s.crdsChanged)
		s.crds.beginRun()
	case s.crds != nil:
		s.crds.needed = s.unserved > 0
		s.crds.expireAfter(*s.options.IdleGrace)
	}
}

// crdsChanged pokes the NotServed parts whose resource one of these CRDs defines.
func (s *Set) crdsChanged(_ change, crds ...client.Object) {
	s.metrics.pokes.WithLabelValues(crdKind.Resource).Inc()
	names := map[string]bool{}
	for _, crd := range crds {
		names[crd.GetName()] = true
	}
	for _, p := range s.parts {
		if p.state == NotServed && names[p.key.resource.GroupResource().String()] {
			p.pokeReview(s.options.RBACDebounce)
		}
	}
}
