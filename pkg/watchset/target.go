package watchset

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is where the requests of a part go. For a Request of a kind it is a guess without a client until discovery has the kind, and
// another one when the server serves the kind in another way.
type target struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind // empty for a Request of a resource
	client   resourceClient          // nil for a guess
}

// firstTarget returns the target of a new part. Only messages and metrics use a guess.
func (s *Set) firstTarget(v view) *target {
	if v.gvk.Empty() {
		return &target{resource: v.resource, client: s.clients.resource(v.resource, v.form, s.options.Scheme)}
	}
	guess, _ := meta.UnsafeGuessKindToResource(v.gvk)
	return &target{resource: guess}
}

// resource returns the resource that the part lists and watches.
func (sel *selection) resource() schema.GroupVersionResource { return sel.target.Load().resource }

// byKind reports whether the request names a kind, whose resource discovery knows.
func (sel *selection) byKind() bool { return !sel.key.gvk.Empty() }

// notServed returns the error of a part whose resource or kind the server doesn't serve.
func (sel *selection) notServed(reason string) *NotServedError {
	return &NotServedError{Resource: sel.key.resource, Kind: sel.key.gvk, reason: reason}
}

// findServed asks discovery for what the part's request names; nil if it is not served. Cached answers that are older than since are
// not used.
func (p *part) findServed(ctx context.Context, since time.Time) (*metav1.APIResource, error) {
	if p.selection.byKind() {
		return p.set.catalog.findKind(ctx, p.selection.key.gvk, since)
	}
	return p.set.catalog.findResource(ctx, p.selection.key.resource, since)
}

// setTarget directs the requests of a part whose request names a kind to the resource that discovery found. The caller holds the
// Set's lock.
func (p *part) setTarget(served *metav1.APIResource) {
	if !p.selection.byKind() {
		return
	}
	resource := schema.GroupVersionResource{Group: served.Group, Version: served.Version, Resource: served.Name}
	p.selection.target.Store(&target{
		resource: resource, kind: resource.GroupVersion().WithKind(served.Kind),
		client: p.set.clients.resource(resource, p.selection.key.form, p.set.options.Scheme),
	})
	p.resolved, p.global = true, !served.Namespaced
}

// resolveKind finds the resource of a part whose request names a kind, and reports whether the run can go on. Where discovery fails, it
// asks again until the run is over; the part is Degraded after DegradedAfter.
func (r *run) resolveKind() bool {
	p, backoff := r.part, newBackoff()
	resolved := false
	for r.locked(func() { resolved = p.resolved }); !resolved; {
		r.locked(r.starting)
		served, err := p.findServed(r.ctx, time.Time{})
		switch problem := p.selection.findMisfit(served); {
		case r.ctx.Err() != nil:
			return false
		case err != nil:
			r.locked(func() { r.trouble(err) })
			<-r.clock().After(backoff.Step())
			continue
		case problem != nil:
			r.locked(func() { p.loseStore(NotServed, problem) })
			return false
		}
		resolved = true
		r.locked(func() {
			p.setTarget(served)
			p.agenda.degrade = time.Time{} // the run may wait for a slot now
		})
	}
	return r.ctx.Err() == nil
}
