package watchset

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the Set watches for itself, as metadata and cluster-wide: the kinds of RBAC, and CRDs.
var (
	rbacKinds = []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}
	crdKind   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// newOwn makes a part that pokes others.
func (s *Set) newOwn(resource schema.GroupVersionResource, observer func(change, ...client.Object)) *part {
	p := s.newPart(partKey{view: view{resource: resource}}, Request{Resource: resource})
	p.observer, p.needed, p.admitted = observer, true, true
	return p
}

// watchRBAC watches the kinds of RBAC from the first informer on, each by itself and under the same back-off as all parts.
func (s *Set) watchRBAC() {
	if s.rbac != nil || s.options.WatchRBAC == Off {
		return
	}
	s.rbac = []*part{} // so that its parts don't ask for themselves
	for _, kind := range rbacKinds {
		var own *part
		own = s.newOwn(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: kind},
			func(c change, objects ...client.Object) { s.rbacChanged(own, c, objects) })
		s.rbac = append(s.rbac, own)
		own.begin()
	}
}

// rbacChanged pokes the parts that an event may concern: no RoleBinding changes a cluster-wide right. When the watch begins,
// what happened before is not known.
func (s *Set) rbacChanged(own *part, c change, objects []client.Object) {
	s.metrics.pokes.WithLabelValues(own.key.resource.Resource).Inc()
	first := own.settled == ""
	for _, p := range s.parts {
		switch {
		case c == initial && first && p.state != Forbidden:
		case c != initial && objects[0].GetNamespace() != "" && objects[0].GetNamespace() != p.key.namespace:
		default:
			p.poke(s.options.RBACDebounce)
		}
	}
}

// needCRDs watches CRDs while some part is NotServed.
func (s *Set) needCRDs() {
	switch {
	case s.options.WatchCRDs == Off || s.stopped:
	case s.unserved > 0 && (s.crds == nil || s.crds.gone):
		s.crds = s.newOwn(crdKind, s.crdsChanged)
		s.crds.begin()
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
			p.poke(s.options.RBACDebounce)
		}
	}
}
