// Package watchset runs informers that exist only while some object needs them, and that see only what RBAC lets them
// see. A missing right neither stops them nor makes them spin.
//
// An Owner, which is a reconcile.Request of a controller, leases what it needs: with Acquire, or with a Session for one
// reconciliation. The Session's Reader is a client.Reader that starts informers just in time. Its Commit releases what
// the owner needs no longer. Equal requests share one list and watch, and an informer without leases ends after
// Options.IdleGrace.
//
// An informer's State changes when a right is lost or returns, and when a CRD is created or deleted. A missing right is
// never mistaken for a missing object: only a Synced informer answers NotFound. An informer that is Forbidden or
// NotServed holds nothing; event handlers get no deletions when that state begins, since the objects may still exist.
// An informer that is Degraded still holds the objects that it saw last, and a Lease returns them with a
// *DegradedError.
//
// A Request names a resource or a kind. For a kind the Set finds the resource by discovery, and finds it again after a
// time in which the kind was not served. A caller that keeps its own store sets the Request's Sink.
//
// Source and States connect a Set to a controller of controller-runtime: Source brings events of objects, States brings
// changes of states. Neither keeps the controller from starting, whatever right or resource is missing.
//
// No rights are reviewed before an informer starts: its first request shows whether a right is missing. A Forbidden
// informer costs one review of its rights per back-off (Options.Backoff). Where the identity may watch the kinds of
// RBAC and CRDs, the Set notices changes of rights within seconds; elsewhere it notices them by the back-off and by
// Options.VerifyInterval.
//
// These observations, on kube-apiserver and with client-go 0.35, are the reasons for much of this:
//   - An informer of client-go whose identity may only list reports HasSynced, and polls: 18 requests in the first minute. With only the
//     right to watch it syncs. So the Set demands both. Without any right it sends 12 requests in the first minute, and never stops.
//   - The API server checks rights before it looks whether a resource exists, and answers 403 for a CRD that is missing. So the Set asks
//     discovery after a 403. After a CRD was deleted, its watch sends deletions and closes, and lists are answered with 404. While the CRD
//     is made anew, lists are answered with 429 for a moment.
//   - An open watch continues to deliver after the right is revoked, until the stream is renewed after at most 10 minutes.
//   - A stream on a deleted namespace stays open, and delivers the objects of a new namespace of that name without any right in it. For a
//     namespace that does not exist, a list is answered with 403 if rights depend on RoleBindings there. If rights are cluster-wide, the
//     answer is an empty list.
//   - A review may deny with an evaluation error because the authorizer was unavailable for a moment, but RBAC sets such an error on true
//     denials, too. So the Set sends the denied requests, and decides by their answers.
//   - A stream that ends before it has sent all initial objects carries no error. So the Set asks for the reason by a list of one object.
//   - If an object loses the label by which it is selected, a watch of metadata sends a deletion with the old labels, a new resourceVersion
//     and no deletionTimestamp.
//
// Inside the package, a part is one list and watch together with the store that it fills; leases share parts. A part's
// selection describes what is listed and watched, and its target is the resource of a kind that the request names. Its
// contents are the objects, and its demand is who needs it. Its agenda records when its next actions are due, and its
// run makes the requests. A lease's coverage is where the lease has parts. A feed passes a part's changes on to the
// handler of one Source. A slot is the permission to run one of the initial lists that Options.StartConcurrency allows
// at a time. Room is what Options.MaxInformers and Options.MaxNamespaces leave for further informers.
//
// There is one lock for each Set (lock.go), because a change of one informer's rights moves leases, other informers and
// what controllers are told, in one step. Set is the public face over types that own their state: registry (parts),
// ownership (leases and sessions), listeners (feeds of Sources, queues of States), reviewer (reviews of rights),
// ownWatches (RBAC and CRDs), catalog (discovery), clients. All of a part but its run lies in it by value, because
// there are thousands of parts.
//
// Objects that a Lease returns are shared with other callers, and must not be changed; objects that a Reader returns
// are copies.
package watchset
