package watchset

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The resources that the Set watches for itself, cluster-wide: the kinds of RBAC, and CRDs. The Set reads role and
// subjects of bindings, and only the names of all other objects.
var (
	rbacKinds = []string{roleKind, roleBindingKind, clusterRoleKind, clusterRoleBindingKind}
	crdKind   = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// ownWatches are what a Set watches for itself. They show that the rights of its parts, or the resources that the
// server serves, may have changed. The Set's lock guards it, except the identity, which has a lock of its own.
type ownWatches struct {
	set      *Set
	rbac     []*part // the parts that watch the kinds of RBAC
	bindings bindings
	identity identity
	crds     *part         // the part that watches CRDs while some part is NotServed, or may change its version
	changing int           // how many parts that are not Pending may change their version
	counts   map[State]int // of parts; only those for Forbidden and NotServed are used
}

// haltOwnParts ends the Set's own parts for good.
func (w *ownWatches) haltOwnParts() {
	for _, p := range append(w.rbac, w.crds) {
		if p != nil {
			p.haltRunAndTimer()
		}
	}
}

// newOwnPart makes a part that the Set watches for itself. An event of this part makes the Set review the rights of
// other parts. observer gets each object as trim returns it. The part itself stores no objects.
func (w *ownWatches) newOwnPart(resource schema.GroupVersionResource, form Form, trim func(client.Object) client.Object,
	observer func(change, ...client.Object)) *part {
	p := w.set.newPart(partKey{view: view{resource: resource, form: form}}, Request{Resource: resource, Form: form})
	p.selection.observer, p.selection.trim, p.demand.needed, p.admitted = observer, trim, true, true
	return p
}

// trimToNameOnly returns an object that has only the namespace, name, UID and resourceVersion of the given one.
func trimToNameOnly(object client.Object) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}}
}

// startRBACWatches starts one watch for each kind of RBAC, unless such watches exist already or none is needed. Each
// has the same back-off as all parts, and a missing right on one kind doesn't stop the others.
func (w *ownWatches) startRBACWatches() {
	if w.rbac != nil || !w.needsRBAC() {
		return
	}
	w.rbac = []*part{} // not nil: the parts begun below call startRBACWatches again
	for _, kind := range rbacKinds {
		form, trim := Metadata, trimToNameOnly
		if kind == roleBindingKind || kind == clusterRoleBindingKind {
			form, trim = Full, w.identity.trimBindingObject
		}
		var own *part
		own = w.newOwnPart(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: kind}, form, trim,
			func(c change, objects ...client.Object) { w.reviewAfterRBACEvent(own, c, objects) })
		w.rbac = append(w.rbac, own)
		own.beginListAndWatch()
	}
}

// reviewAfterRBACEvent schedules reviews of the parts whose rights an event may have changed. For the first list it
// schedules reviews of the Forbidden parts.
func (w *ownWatches) reviewAfterRBACEvent(own *part, c change, objects []client.Object) {
	kind := own.selection.targetResource().Resource
	w.set.metrics.pokes.WithLabelValues(kind).Inc()
	if c != initial {
		w.scheduleReviewsIn(w.bindings.recordRBACEvent(kind, objects[0], c == removed, w.knowsAllBindings()))
		return
	}
	w.bindings.replaceBindingsOfKind(kind, objects)
	// Before a later list, the Set may have missed events, so all parts are reviewed.
	first := own.settled == ""
	for _, p := range w.set.parts.all {
		if !first || p.state == Forbidden {
			p.scheduleReview(w.set.options.RBACDebounce)
		}
	}
}

// scheduleReviewsIn schedules reviews of the parts of the given namespaces; if "" is among them, of all parts, since a
// cluster-wide right may have changed.
func (w *ownWatches) scheduleReviewsIn(namespaces []string) {
	if slices.Contains(namespaces, "") {
		for _, p := range w.set.parts.all {
			p.scheduleReview(w.set.options.RBACDebounce)
		}
		return
	}
	for _, namespace := range namespaces {
		for p := range w.set.parts.local[namespace] {
			p.scheduleReview(w.set.options.RBACDebounce)
		}
	}
}

// knowsAllBindings reports whether all bindings are known. If not, an event of a role may concern any part.
func (w *ownWatches) knowsAllBindings() bool {
	for _, p := range w.rbac {
		if p.selection.key.form == Full && p.state != Synced {
			return false
		}
	}
	return true
}

// countStateChange counts a part that changes its state; to is "" for a part that is closed. It starts or ends the
// Set's own watches, as the new state requires.
func (w *ownWatches) countStateChange(from, to State) {
	if from == to {
		return
	}
	w.counts[from]--
	w.counts[to]++
	if w.set.stopped {
		return
	}
	if from == NotServed || to == NotServed {
		w.arrangeCRDWatch()
	}
	if from == Forbidden || to == Forbidden {
		w.arrangeRBACWatches()
	}
}

// countChanging counts a part that may change its version: one that begins, or one that is closed.
func (w *ownWatches) countChanging(begins bool) {
	if begins {
		w.changing++
	} else {
		w.changing--
	}
	if !w.set.stopped {
		w.arrangeCRDWatch()
	}
}

// arrangeCRDWatch starts the watch on CRDs if some part is NotServed or may change its version, and lets it end after
// IdleGrace if none is.
func (w *ownWatches) arrangeCRDWatch() {
	needed := w.counts[NotServed]+w.changing > 0
	switch {
	case w.set.options.WatchCRDs == Off:
	case needed && (w.crds == nil || w.crds.gone):
		w.crds = w.newOwnPart(crdKind, Metadata, trimToNameOnly, w.reviewAfterCRDEvent)
		w.crds.beginListAndWatch()
	case w.crds != nil:
		w.keepOrExpire(w.crds, needed)
	}
}

// needsRBAC reports whether the kinds of RBAC are to be watched now.
func (w *ownWatches) needsRBAC() bool {
	mode := w.set.options.WatchRBAC
	return mode != Off && (mode != WhileForbidden || w.counts[Forbidden] > 0)
}

// arrangeRBACWatches is arrangeCRDWatch for the kinds of RBAC where WatchRBAC is WhileForbidden.
func (w *ownWatches) arrangeRBACWatches() {
	if slices.ContainsFunc(w.rbac, func(p *part) bool { return p.gone }) { // they ended after IdleGrace
		w.haltRBACWatches()
	}
	w.startRBACWatches()
	for _, p := range w.rbac {
		w.keepOrExpire(p, w.needsRBAC())
	}
}

// haltRBACWatches ends the watches of the kinds of RBAC, and drops what they have shown.
func (w *ownWatches) haltRBACWatches() {
	for _, p := range w.rbac {
		p.haltRunAndTimer()
	}
	w.rbac, w.bindings = nil, bindings{}
}

// keepOrExpire keeps one of the Set's own parts if it is needed, and otherwise lets it end after IdleGrace.
func (w *ownWatches) keepOrExpire(own *part, needed bool) {
	own.demand.needed = needed
	own.closeUnneededAfter(*w.set.options.IdleGrace)
}

// reviewAfterCRDEvent schedules reviews of the NotServed parts whose resource one of these CRDs defines, or whose kind
// one of them may define. It also schedules reviews of the parts whose kind one of them may define in another version.
func (w *ownWatches) reviewAfterCRDEvent(_ change, crds ...client.Object) {
	w.set.metrics.pokes.WithLabelValues(crdKind.Resource).Inc()
	resources, groups := map[schema.GroupResource]bool{}, map[string]bool{}
	for _, crd := range crds {
		resource := schema.ParseGroupResource(crd.GetName())
		resources[resource], groups[resource.Group] = true, true
	}
	for _, p := range w.set.parts.all {
		sel := &p.selection
		isDefined := resources[sel.key.resource.GroupResource()] || sel.requestNamesKind() && groups[sel.key.gvk.Group]
		if isDefined && sel.mayChangeVersion() && p.run != nil { // discovery may show the change of a CRD later than the watch does
			p.agenda.verify = time.Now().Add(withJitter(w.set.options.Backoff.Initial))
		}
		if isDefined && (p.state == NotServed || sel.mayChangeVersion()) {
			p.scheduleReview(w.set.options.RBACDebounce)
		}
	}
}
