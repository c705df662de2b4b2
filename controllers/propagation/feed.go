package propagation

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// feed enters what one watch of a kind sees in the tables, and queues the keys that follow. It implements Sink.
type feed struct {
	origin
	run      *kindRun
	kinds    *kinds
	tables   *tables
	removals *removals
	measure  *measure
	queue    *queue
	// vanished ends all watches of the kind, because the API server doesn't serve the kind any more.
	vanished func()
}

// Put implements Sink.
func (f *feed) Put(meta *metav1.PartialObjectMetadata) { f.follow(f.tables.putObject(f.origin, meta)) }

// Gone implements Sink.
func (f *feed) Gone(meta *metav1.PartialObjectMetadata) {
	f.follow(f.tables.removeObject(f.origin, meta))
}

// Replace implements Sink.
func (f *feed) Replace(all []*metav1.PartialObjectMetadata) {
	f.follow(f.tables.replaceObjects(f.origin, all))
	f.queue.Add(f.kinds.setWatch(f.run, f.role, kindActive)...)
}

// Lost implements Sink.
func (f *feed) Lost(err error) {
	f.kinds.noteFailure(f.run, err)
	switch {
	case apierrors.IsNotFound(err):
		f.kinds.setWatch(f.run, f.role, kindPending)
		f.vanished()
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		f.kinds.setWatch(f.run, f.role, kindForbidden)
	}
}

// follow queues what follows from an event. On the leader, follow also begins to measure the fan-out of a source's event, but not for the
// events that only fill the tables before the kind is active.
func (f *feed) follow(e effects) {
	if f.queue.Leads() && f.kinds.stateOf(f.kind.GroupKind()) == kindActive {
		for _, k := range e.keys {
			if k.what == aSource {
				f.measure.beginFanout(k.slot, time.Now())
			}
		}
	}
	f.removals.release(e.freed...)
	f.queue.Add(e.keys...)
}
