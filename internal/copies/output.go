package copies

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Output is something that is to be done, or told to somebody, because of an Input.
type Output any

// Queue has keys worked on, at once or when some time has passed.
type Queue struct {
	Keys  []Key
	After time.Duration
}

// Request is an Output that a worker carries out: it makes the requests and applies their answer. A Started, or an answer, leads to at most
// one Request.
type Request interface{ isRequest() }

// ReadSource asks for a read of a whole source, and a SourceRead.
type ReadSource struct {
	Source   Slot
	Resource schema.GroupVersionResource
}

// FindLoss asks for a read of a source that no watch shows any more, and a LossFound.
type FindLoss struct {
	Source   Slot
	Resource schema.GroupVersionResource
	Mode     KindMode
}

// CheckRemoval asks whether the namespace of a copy's source is really not above the copy, and a RemovalChecked.
type CheckRemoval struct {
	Slot   Slot
	Action Action
	Over   *Copy
}

// WriteCopy asks for the requests that carry out an Action, and a CopyWritten.
type WriteCopy struct {
	Slot     Slot
	Resource schema.GroupVersionResource
	Action   Action
	// Over is the copy at the slot, as it is known; nil if there is none.
	Over *Copy
	// Probe says that another object was at the slot at the last try: a read comes before the write.
	Probe bool
}

func (ReadSource) isRequest()   {}
func (FindLoss) isRequest()     {}
func (CheckRemoval) isRequest() {}
func (WriteCopy) isRequest()    {}

// Follow says in which namespaces, by their UIDs, narrow kinds are to be watched from now on.
type Follow struct{ Namespaces map[string]types.UID }

// FollowSoon asks for a FollowDue soon.
type FollowSoon struct{}

// RightsWait says that rights are to wait for rails.
type RightsWait struct{}

// Report says that there is something new to report on these namespaces.
type Report struct{ Namespaces []string }

// Event is an Event on a source or a copy.
type Event struct {
	Slot    Slot
	Kind    schema.GroupVersionKind
	UID     string
	Warning bool
	Reason  v1alpha1.Reason
	Message string
}

// Log is a line for the log. Err is nil for a mere message.
type Log struct {
	Message string
	Slot    Slot
	Err     error
}

// DriftSource is how drift was found.
type DriftSource string

// The ways to find drift.
const (
	FoundByWatch DriftSource = "watch"
	FoundAtStart DriftSource = "start"
	FoundByScrub DriftSource = "scrub"
)

// These Outputs are for metrics.
type (
	// CopyRepaired says that the drift of a copy was repaired.
	CopyRepaired struct {
		Kind  schema.GroupKind
		Found DriftSource
	}
	// RightsBeforeRails says that rights were given although rails are missing.
	RightsBeforeRails struct{}
	// FanoutEnded says that all writes that follow from one change of a source were answered, and when the change came.
	FanoutEnded struct {
		Kind  schema.GroupKind
		Verb  Verb
		Since time.Time
	}
	// MoveEnded says that all copies below a namespace that has moved are what they should be, and when it moved.
	MoveEnded struct{ Since time.Time }
)
