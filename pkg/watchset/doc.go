// Package watchset runs informers that exist only while some object needs them, see only what RBAC lets them see, and neither
// stop nor spin when a right is missing.
//
// A Set runs informers for one identity. An Owner, which is a reconcile.Request of a controller, leases what it needs with
// Acquire, or for the time of a reconciliation with a Session: its Reader is a client.Reader that starts informers just in time,
// and its Commit releases what the owner needs no longer. Equal requests share one list and watch, and an informer without
// leases ends after Options.IdleGrace.
//
// Losing a right, getting it back, and a CRD that comes or goes are states to observe: see State. Not being allowed to look is
// never mistaken for "it isn't there": only a Synced informer answers NotFound, and one that is Forbidden or NotServed holds
// nothing, without a word to event handlers, since nobody knows what became of the objects. One that is Degraded still holds what
// it saw last, and says so.
//
// Source and States connect a Set to a controller of controller-runtime: the one brings events of objects, the other changes of
// states. Neither keeps the controller from starting, whatever is missing.
//
// Rights are asked for no sooner than they are needed: the first request of an informer is its list. While one is forbidden it
// costs a review now and then (Options.Backoff). Where the identity may watch the kinds of RBAC and CRDs, changes are noticed
// within seconds, else by the back-off and by Options.VerifyInterval.
//
// What a caller gets from a Lease is shared with others, and must not be changed; what it gets from a Reader is a copy.
package watchset
