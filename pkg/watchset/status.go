package watchset

import "time"

// State is how far an informer is.
type State string

// States of an informer. Only in Synced does absence mean anything.
const (
	Pending   State = "Pending"   // not started: no slot, limit, Start not called, or an empty NamespaceSet
	Syncing   State = "Syncing"   // the first list is under way
	Synced    State = "Synced"    // the first list is complete and a watch is open
	Forbidden State = "Forbidden" // list or watch is not allowed; nothing is held
	NotServed State = "NotServed" // discovery has no such resource; nothing is held
	Degraded  State = "Degraded"  // any other trouble for longer than DegradedAfter; what was last known is held
)

// severity says which state speaks for a lease of several parts: the worst.
var severity = map[State]int{Synced: 0, Pending: 1, Syncing: 2, Degraded: 3, NotServed: 4, Forbidden: 5}

// settled says whether a state stays until something changes: one that owners are told of.
func (s State) settled() bool { return s != Pending && s != Syncing }

// Status is the state of a lease, or of one informer.
type Status struct {
	State State
	// Since is when the state began.
	Since time.Time
	// Err says why it isn't Synced: *ForbiddenError, *NotServedError, *DegradedError or ErrLimit; else nil.
	Err error
	// Missing are the verbs that are not allowed, of list and watch.
	Missing []string
	// Retry is when it is looked at again by itself; zero if there is no need.
	Retry time.Time
	// Objects is how many objects are held.
	Objects int
}

// InformerStatus is one informer, what it shows, and how many leases share it. Its Scope is Cluster, Namespace or Object.
type InformerStatus struct {
	Request
	Status
	Leases int
}
