package watchset

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// State states what an informer knows of its objects.
type State string

// States of an informer. Only in Synced does an object's absence mean that it doesn't exist.
const (
	// not started: StartConcurrency or MaxInformers is reached, Start was not called, or the NamespaceSet is empty
	Pending   State = "Pending"
	Syncing   State = "Syncing"   // the first list is under way, or the first watch is not open yet
	Synced    State = "Synced"    // the first list is complete and a watch is open
	Forbidden State = "Forbidden" // list or watch is not allowed; nothing is held
	NotServed State = "NotServed" // discovery has no such resource; nothing is held
	Degraded  State = "Degraded"  // no working watch for longer than DegradedAfter, or rights in doubt; objects are held as last seen
)

// severity orders the states: a lease of several informers has the state with the highest number.
var severity = map[State]int{Synced: 0, Pending: 1, Syncing: 2, Degraded: 3, NotServed: 4, Forbidden: 5}

// isSettled reports whether a state lasts until rights, resources or the server change. Set.States enqueues owners for
// such states only.
func (s State) isSettled() bool { return s != Pending && s != Syncing }

// Status is the state of a lease, or of one informer.
type Status struct {
	State State
	// Resource is what the informer lists and watches. Kind is set only for a Request that names a kind, with the
	// version of Resource. Both are empty while the server isn't known to serve the kind, and where there is no
	// informer.
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	// Since is when the informer entered the state. For several informers, it is that of the one in the worst state; of
	// equals, the oldest. It is zero where the state is Pending because there is no informer.
	Since time.Time
	// Err states why the state isn't Synced: *ForbiddenError, *NotServedError, *DegradedError or ErrLimit; else nil.
	Err error
	// Missing lists the verbs, of list and watch, that the identity may not use.
	Missing []string
	// Retry is when a Forbidden or NotServed informer is reviewed next, unless an event of RBAC or CRDs causes an
	// earlier review; else zero.
	Retry time.Time
	// Objects is how many objects are held.
	Objects int
}

// InformerStatus describes one informer: its Request, its Status, and how many leases share it. The Scope is Cluster,
// Namespace or Object.
type InformerStatus struct {
	Request
	Status
	Leases int
}
