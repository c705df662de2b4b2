package watchset

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// target is the resource that a part lists and watches. For a Request of a kind it is a guess, without a client, until
// discovery has found the kind. If the server later serves the kind by another resource, the part gets a new target.
type target struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind // empty for a Request of a resource
	client   resourceClient          // nil for a guess
}

// firstTargetOf returns the target of a new part. For a kind it is a guess, which only messages and metrics use.
func (s *Set) firstTargetOf(v view) *target {
	if v.gvk.Empty() {
		return &target{resource: v.resource, client: s.clients.resourceClientFor(v.resource, v.form, s.options.Scheme)}
	}
	guess, _ := meta.UnsafeGuessKindToResource(v.gvk)
	return &target{resource: guess}
}

// targetResource returns the resource that the selection's part, which is one informer, lists and watches. If the
// request names a kind, it is a guess until discovery has found that kind.
func (sel *selection) targetResource() schema.GroupVersionResource { return sel.target.Load().resource }

// requestNamesKind reports whether the request names a kind instead of a resource.
func (sel *selection) requestNamesKind() bool { return !sel.key.gvk.Empty() }

// mayChangeVersion reports whether the server may prefer another version of the kind some day. Then the request names
// no version, and the group is none of Kubernetes' own: the versions of those stay the same while a server runs.
func (sel *selection) mayChangeVersion() bool {
	return sel.requestNamesKind() && sel.key.gvk.Version == "" && !scheme.Scheme.IsGroupRegistered(sel.key.gvk.Group)
}

// feedResource returns the resource by which feeds get the part's events. Where the version may change, it has none, so
// that the change cuts no feed off.
func (sel *selection) feedResource() schema.GroupVersionResource {
	if sel.mayChangeVersion() {
		return sel.targetResource().GroupResource().WithVersion("")
	}
	return sel.targetResource()
}

// newNotServedError returns the error of a part whose resource or kind the server doesn't serve.
func (sel *selection) newNotServedError(reason string) *NotServedError {
	return &NotServedError{Resource: sel.key.resource, Kind: sel.key.gvk, reason: reason}
}

// discoverServed asks discovery for the resource or kind that the part's request names; nil if it is not served. Cached
// answers that are older than since are not used.
func (p *part) discoverServed(ctx context.Context, since time.Time) (*metav1.APIResource, error) {
	if p.selection.requestNamesKind() {
		return p.set.catalog.findKind(ctx, p.selection.key.gvk, since)
	}
	return p.set.catalog.findResource(ctx, p.selection.key.resource, since)
}

// directRequestsTo directs the requests of a part whose request names a kind to the resource that discovery found. The
// caller holds the Set's lock.
func (p *part) directRequestsTo(served *metav1.APIResource) {
	if !p.selection.requestNamesKind() {
		return
	}
	resource := resourceOf(served)
	p.selection.target.Store(&target{
		resource: resource, kind: resource.GroupVersion().WithKind(served.Kind),
		client: p.set.clients.resourceClientFor(resource, p.selection.key.form, p.set.options.Scheme),
	})
	p.resolved, p.global = true, !served.Namespaced
}

func resourceOf(served *metav1.APIResource) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: served.Group, Version: served.Version, Resource: served.Name}
}

// changeVersion has the part list and watch its kind in another version. Until the list has arrived, the part keeps its
// state and objects. The caller holds the Set's lock.
func (p *part) changeVersion(served *metav1.APIResource) {
	p.endRun()
	if p.state == Synced {
		p.lastSync = time.Now()
	}
	p.directRequestsTo(served)
	p.beginListAndWatch()
	p.reportStateToSink()
}

// resolveRequestedKind finds the resource of a part whose request names a kind, and reports whether the run can go on.
// Where discovery fails, it asks again until the run is over; the part is Degraded after DegradedAfter.
func (r *run) resolveRequestedKind() bool {
	p, backoff := r.part, newRunBackoff()
	resolved := false
	for r.callUnderSetLock(func() { resolved = p.resolved }); !resolved; {
		r.callUnderSetLock(r.recordListStart)
		served, err := p.discoverServed(r.ctx, time.Time{})
		switch problem := p.selection.checkServedResource(served); {
		case r.ctx.Err() != nil:
			return false
		case err != nil:
			r.callUnderSetLock(func() { r.handleWatchTrouble(err) })
			<-r.clockEndingWithRun().After(backoff.Step())
			continue
		case problem != nil:
			r.callUnderSetLock(func() { p.endRunAndEmpty(NotServed, problem) })
			return false
		}
		resolved = true
		r.callUnderSetLock(func() {
			p.directRequestsTo(served)
			p.agenda.degrade = time.Time{} // the run may wait for a slot now
		})
	}
	return r.ctx.Err() == nil
}
