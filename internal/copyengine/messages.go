package copyengine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Input is something that has happened. Apply takes it into a State.
type Input interface{ applyTo(s *State) }

// ForestChanged reports that the forest has changed, and for which namespaces, existing or not, copies may differ now.
type ForestChanged struct {
	Old, New   *forest.Snapshot
	Namespaces []string
}

// Watch names one watch of a kind.
type Watch struct {
	Kind schema.GroupKind
	Role Role
}

// Role names which objects of a kind a watch shows.
type Role int8

// The roles of a watch.
const (
	SourcesAndCopies Role = iota // every object of the kind, for a kind in mode All
	SourcesAlone                 // the objects with the label propagate
	CopiesAlone                  // the objects with the label inherited-from
)

func (r Role) showsSources() bool { return r != CopiesAlone }
func (r Role) showsCopies() bool  { return r != SourcesAlone }

// ObjectSeen reports that a watch has shown an object, which is new or has changed.
type ObjectSeen struct {
	Watch
	Object *metav1.PartialObjectMetadata
}

// ObjectGone reports that a watch has shown that an object was deleted, or does not match the watch's selector any
// more.
type ObjectGone struct {
	Watch
	Object *metav1.PartialObjectMetadata
}

// Listed reports that a watch shows exactly these objects in Namespace, or Everywhere, as of ResourceVersion.
type Listed struct {
	Watch
	Namespace, ResourceVersion string
	Objects                    []*metav1.PartialObjectMetadata
}

// WatchChanged reports that the state of a watch has changed in Namespace, or Everywhere.
type WatchChanged struct {
	Watch
	Namespace string
	Status    watchset.Status
}

// FollowDue asks for the namespaces in which narrow kinds are to be watched. The answer is a Follow, if they have
// changed.
type FollowDue struct{}

// Elected reports that this replica leads from now on: everything that is known is worked on.
type Elected struct{}

// Ticked comes on the leader only, once every Timing.Tick. Synced reports that the forest is known. Idle reports that,
// too, and that no key waits in the queue, and that no worker has one.
type Ticked struct{ Synced, Idle bool }

// Started reports that a worker has taken a Key from the queue. The worker gets at most one Request.
type Started struct{ Key Key }

// RightsAsked asks whether rights in Namespace are to wait for rails. The answer is a RightsWait, or none if they need
// not wait.
type RightsAsked struct{ Namespace string }

// BodyRead describes what a read of a source has shown.
type BodyRead struct {
	Source               copies.Slot
	Resource             schema.GroupVersionResource
	UID, ResourceVersion string
	Body                 *copies.Body
}

// SourceRead is the answer to a ReadSource; a BodyRead has come before it if the source was read.
type SourceRead struct {
	Source copies.Slot
	Err    error
}

// LossFound is the answer to a FindLoss.
type LossFound struct {
	Source copies.Slot
	Loss   copies.Loss
	Err    error
}

// RemovalChecked is the answer to a CheckRemoval. Err is nil if the forest is right about the namespaces above,
// ErrBehind if it may be outdated, or the error of a read.
type RemovalChecked struct {
	CheckRemoval
	Err error
}

// CopyWritten is the answer to a WriteCopy.
type CopyWritten struct {
	WriteCopy
	Result Result
	Err    error
}

// Result is what the requests for one WriteCopy have shown.
type Result struct {
	// Written is the copy as a write has left it.
	Written *metav1.PartialObjectMetadata
	// Found is a copy of the operator's own that was found where none was known. Unlabelled reports that its label
	// inherited-from is missing.
	Found      *metav1.PartialObjectMetadata
	Unlabelled bool
	// Absent reports that the copy does not exist, Deleted that the API server has accepted its deletion.
	Absent, Deleted bool
	// Compared is the body of the source with which the whole copy was compared: the copy needs no change. ComparedUID
	// and ComparedVersion are those of the copy.
	Compared        *copies.Body
	ComparedUID     string
	ComparedVersion string
	// FoundDrifted reports that the copy was read whole, and differs from what the operator wrote.
	FoundDrifted bool
	// Repaired reports that the write has put back what somebody had changed.
	Repaired bool
}

// DriftFound reports that this version of a copy differs from what its source says.
type DriftFound struct {
	Slot                 copies.Slot
	UID, ResourceVersion string
}

// Output is something that the caller must do or report because of an Input.
type Output = copies.Output

// Queue asks for keys to be queued.
type Queue = copies.Queue[Key]

// Request is an Output that a worker carries out: the worker sends the requests, and applies their answer. A Started,
// or an answer, leads to at most one Request.
type Request interface{ isRequest() }

// ReadSource asks for a read of a whole source. The answer is a SourceRead.
type ReadSource struct {
	Source   copies.Slot
	Resource schema.GroupVersionResource
}

// FindLoss asks for a read of a source that no watch shows any more. The answer is a LossFound.
type FindLoss struct {
	Source   copies.Slot
	Resource schema.GroupVersionResource
	Mode     copies.KindMode
}

// CheckRemoval asks whether the namespace of a copy's source is really not above the copy. The answer is a
// RemovalChecked.
type CheckRemoval struct {
	Slot   copies.Slot
	Action copies.Action
	Over   *copies.Copy
}

// WriteCopy asks for the requests that carry out an Action. The answer is a CopyWritten.
type WriteCopy struct {
	Slot     copies.Slot
	Resource schema.GroupVersionResource
	Action   copies.Action
	// Over is the copy at the slot, as it is known; nil if there is none.
	Over *copies.Copy
	// Probe reports that another object was at the slot at the last try: a read comes before the write.
	Probe bool
	// flight dates what the answer shows.
	flight *mirror.Flight
}

func (ReadSource) isRequest()   {}
func (FindLoss) isRequest()     {}
func (CheckRemoval) isRequest() {}
func (WriteCopy) isRequest()    {}

// Follow lists the namespaces, with their UIDs, in which narrow kinds (see Kind.IsNarrow) are to be watched from now
// on.
type Follow struct{ Namespaces map[string]types.UID }

// FollowSoon asks for a FollowDue soon.
type FollowSoon struct{}

// RightsWait reports that rights are to wait for rails.
type RightsWait struct{}

// Report reports that there is something new to report on these namespaces.
type Report struct{ Namespaces []string }

// DriftSource is how drift was found.
type DriftSource string

// The ways to find drift: an event, a comparison after a start, the scrub.
const (
	FoundByWatch DriftSource = "watch"
	FoundAtStart DriftSource = "start"
	FoundByScrub DriftSource = "scrub"
)

// These Outputs are for metrics.
type (
	// CopyRepaired reports that the drift of a copy was repaired.
	CopyRepaired struct {
		Kind  schema.GroupKind
		Found DriftSource
	}
	// RightsBeforeRails reports that rights were given although rails are missing.
	RightsBeforeRails struct{}
	// FanoutEnded reports that all writes that follow from one change of a source were answered, and when the change
	// came.
	FanoutEnded struct {
		Kind  schema.GroupKind
		Verb  copies.Verb
		Since time.Time
	}
	// MoveEnded reports that every copy in and below a namespace that has moved has its answer, and when the namespace
	// moved.
	MoveEnded struct{ Since time.Time }
)

// KindCounts are the numbers of one kind, for metrics.
type KindCounts struct {
	Kind                                          schema.GroupKind
	State                                         copies.KindState
	Sources, Copies, Conflicts, Rejected, Limited int
	// Unseen is the number of namespaces in which nothing of the kind is seen, by the state of the watch there.
	Unseen map[string]int
}

// Task is what a Key asks for.
type Task int8

// The tasks.
const (
	LookAtNamespace Task = iota // queue every slot in a namespace
	LookAtSource                // read a source, or find out whether it is gone
	SpreadSource                // queue the next slots that a source concerns
	LookAtLimits                // queue the sources for which the limits of a tree leave room again
	WriteSlot                   // bring one slot to what it should be
)

// Key is one piece of work in the queue. Equal keys wait there only once.
type Key struct {
	Task Task
	Slot copies.Slot // LookAtNamespace and LookAtLimits use its Namespace alone; for LookAtLimits, it is the root of the tree
}

func namespaceKey(namespace string) Key {
	return Key{LookAtNamespace, copies.Slot{Namespace: namespace}}
}

func limitsKey(root string) Key { return Key{LookAtLimits, copies.Slot{Namespace: root}} }

func sourceTask(slot copies.Slot) Key { return Key{LookAtSource, slot} }

func spreadKey(source copies.Slot) Key { return Key{SpreadSource, source} }

func slotKey(slot copies.Slot) Key { return Key{WriteSlot, slot} }

func slotKeys(slots []copies.Slot) []Key {
	keys := make([]Key, len(slots))
	for i, slot := range slots {
		keys[i] = slotKey(slot)
	}
	return keys
}
