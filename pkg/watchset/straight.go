package watchset

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sink gets the objects of informers, for a caller that keeps its own store of them. Its methods are called while the Set is
// locked: they must be quick, and must not call the Set or a NamespaceSet. Calls about one namespace come one at a time, and in the
// order in which things happened.
type Sink interface {
	// Replace reports that exactly these objects existed at a resourceVersion: in a namespace, or in the whole cluster if namespace is
	// empty. The Set calls it only when a watch is open. After Pending, Forbidden and NotServed, it calls Replace before the state becomes
	// Synced. In Synced and Degraded, it calls Replace when a watch can't continue where the last one ended, for example because that
	// resourceVersion has expired. After that, Degraded becomes Synced. While an Auto lease changes between the cluster and its namespaces,
	// objects put before by another informer of the lease may be newer.
	Replace(namespace, resourceVersion string, all []client.Object)
	// Put reports that an object exists, Gone that it doesn't, or no longer matches the selectors.
	Put(client.Object)
	Gone(client.Object)
	// State reports the state of the informer of a namespace, or of the cluster-wide one if namespace is empty. It is called when the state
	// begins and when its error changes. A watch that ends and is opened again within Options.DegradedAfter changes nothing.
	//
	// In Synced, the objects put so far are those that exist. In Degraded, they are as last seen; there are none if no Replace came since
	// Forbidden, NotServed or Pending. An informer that never listed anything becomes Degraded, too, when Options.DegradedAfter has passed
	// since the first attempt. The Set tries again by itself; Put and Gone may come meanwhile. In Forbidden and NotServed, objects put
	// before no longer count, and no Put or Gone follows before the next Replace. Pending means that no informer follows the namespace:
	// objects put before no longer count, unless another informer of the lease shows them. In an Auto lease, the cluster-wide informer
	// becomes Synced before those of the namespaces become Pending, and Forbidden before these begin.
	//
	// For a Request of a Kind, now has in Synced and Forbidden the resource and version by which the server serves the kind.
	State(namespace string, now Status)
}

// passEventToSink passes one event to a Sink. The caller holds the Set's lock for reading.
func passEventToSink(s Sink, object client.Object, c change) {
	if c == removed {
		s.Gone(object)
		return
	}
	s.Put(object)
}

// reportStateToSink reports the part's status to the request's Sink, if it has one. The caller holds the Set's lock.
func (p *part) reportStateToSink() {
	if p.selection.key.sink != nil {
		p.selection.key.sink.State(p.selection.key.namespace, p.currentStatus())
	}
}

// reportWaitingPlaces reports to the Sink which namespaces have no informer because of MaxNamespaces. It also reports the namespaces in
// before, which had none earlier, that the lease needs no longer. followed holds the namespaces that have an informer. The caller holds
// the Set's lock.
func (l *Lease) reportWaitingPlaces(before []string, followed map[string]bool) {
	if l.key.sink == nil {
		return
	}
	for _, namespace := range before {
		if !followed[namespace] && !l.cover.hasNoRoomFor(namespace) {
			l.key.sink.State(namespace, Status{State: Pending})
		}
	}
	for _, namespace := range l.cover.waiting {
		l.key.sink.State(namespace, pendingStatus(true))
	}
}
