package watchset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sink takes what informers show, where it is kept by somebody else. It is called while the Set is locked: it must be quick, and
// must not call the Set or a NamespaceSet. Calls about one namespace come one at a time, and in the order in which things happened.
type Sink interface {
	// Replace says that exactly these objects existed in a namespace, or in the cluster if it is empty, at a resourceVersion. State
	// follows. What another informer of the same lease has shown meanwhile, as where Auto changes, may be newer.
	Replace(namespace, resourceVersion string, all []client.Object)
	// Put says that an object is there, Gone that it is not, or no longer matches.
	Put(client.Object)
	Gone(client.Object)
	// State says how far the informer of a namespace is. What was brought before means something in Synced, is what was last known
	// in Degraded, and nothing else follows before the next Replace in Forbidden and NotServed. Pending means that the namespace is
	// not followed, or no longer: nothing that was brought before counts, but where another informer shows it. That of the cluster is
	// Synced before the namespaces of an Auto lease become Pending, and Forbidden before they begin.
	State(namespace string, now Status)
}

// tellSink hands an event on. The caller holds the Set's lock for reading.
func (p *part) tellSink(object client.Object, c change) {
	if c == removed {
		p.key.sink.Gone(object)
		return
	}
	p.key.sink.Put(object)
}

// tellState says how far the part is. The caller holds the Set's lock.
func (p *part) tellState() {
	if p.key.sink != nil {
		p.key.sink.State(p.key.namespace, p.status())
	}
}

// tellWaiting says which namespaces are not followed for want of room, and which have waited for it and need none any more. The caller
// holds the Set's lock.
func (l *Lease) tellWaiting(before []string, followed map[string]bool) {
	if l.key.sink == nil {
		return
	}
	for _, namespace := range before {
		if !followed[namespace] && !slices.Contains(l.waiting, namespace) {
			l.key.sink.State(namespace, Status{State: Pending})
		}
	}
	for _, namespace := range l.waiting {
		l.key.sink.State(namespace, l.pending(true))
	}
}
