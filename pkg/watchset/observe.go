package watchset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the Set watches for itself, cluster-wide: the kinds of RBAC, and CRDs. Of a binding it needs the role and the subjects, of
// all others no more than their names.
var (
	rbacKinds = []string{roleKind, roleBindingKind, clusterRoleKind, clusterRoleBindingKind}
	crdKind   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// newOwn makes a part that pokes others. What it shows is held by nobody: trim makes it small while it is listed.
func (s *Set) newOwn(resource schema.GroupVersionResource, form Form, trim func(client.Object) client.Object, observer func(change, ...client.Object)) *part {
	p := s.newPart(partKey{view: view{resource: resource, form: form}}, Request{Resource: resource, Form: form})
	p.observer, p.trim, p.needed, p.admitted = observer, trim, true, true
	return p
}

// nameOnly keeps what names an object.
func nameOnly(object client.Object) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}}
}

// watchRBAC watches the kinds of RBAC from the first informer on, each by itself and under the same back-off as all parts.
func (s *Set) watchRBAC() {
	if s.rbac != nil || s.options.WatchRBAC == Off {
		return
	}
	s.rbac = []*part{} // so that its parts don't ask for themselves
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

// rbacChanged pokes the parts whose rights an event may change. When a watch begins, what happened before is not known.
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

// pokeParts pokes the parts of some namespaces; "" stands for all parts, since a right may have come or gone cluster-wide.
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

// seesBindings says whether all bindings are known: else an event of a role may concern anybody.
func (s *Set) seesBindings() bool {
	for _, p := range s.rbac {
		if p.key.form == Full && p.state != Synced {
			return false
		}
	}
	return true
}

// needCRDs watches CRDs while some part is NotServed.
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

// crdsChanged pokes the parts that wait for these CRDs.
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
