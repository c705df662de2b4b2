package distribute

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Key is one piece of work in the queue: the write of one target, or, if Namespace is empty, a review of all targets
// together.
type Key struct{ Distribution, Namespace string }

func reviewKey(distribution string) Key { return Key{Distribution: distribution} }

// Input is something that has happened. State.Apply takes it in.
type Input interface{ applyTo(s *State) }

// ForestChanged reports that the forest has changed, and for which namespaces, existing or not, targets may differ now.
type ForestChanged struct {
	Old, New   *forest.Snapshot
	Namespaces []string
}

// DefinitionChanged is the state of the watch of ResourceDistributions. A status without a state reports that the watch
// begins.
type DefinitionChanged struct{ watchset.Status }

// DistributionsListed reports that exactly these ResourceDistributions exist.
type DistributionsListed struct {
	All []*v1alpha1.ResourceDistribution
}

// DistributionSeen reports that a ResourceDistribution is new or has changed.
type DistributionSeen struct{ *v1alpha1.ResourceDistribution }

// DistributionGone reports that a ResourceDistribution was deleted.
type DistributionGone struct{ *v1alpha1.ResourceDistribution }

// KindChanged is the state of the watch of a kind's copies.
type KindChanged struct {
	Kind   schema.GroupKind
	Status watchset.Status
}

// CopiesListed reports that exactly these copies of a kind existed at ResourceVersion.
type CopiesListed struct {
	Kind            schema.GroupKind
	ResourceVersion string
	Objects         []*metav1.PartialObjectMetadata
}

// CopySeen reports that a copy is new or has changed.
type CopySeen struct {
	Kind   schema.GroupKind
	Object *metav1.PartialObjectMetadata
}

// CopyGone reports that a copy was deleted, or lost its label.
type CopyGone struct {
	Kind   schema.GroupKind
	Object *metav1.PartialObjectMetadata
}

// ObstacleWatch is a watch of the objects that have the kind and the name of a distribution's copies but are not its
// copies. No other watch shows unrelated objects. The watch goes on as long as such objects keep targets in conflict.
type ObstacleWatch struct {
	Distribution string
	Kind         schema.GroupKind
	Name         string
	Resource     schema.GroupVersionResource
}

// ObstaclesListed reports that the watch shows exactly these objects.
type ObstaclesListed struct {
	Watch           *ObstacleWatch
	ResourceVersion string
	Objects         []*metav1.PartialObjectMetadata
}

// ObstacleSeen reports that the watch has shown an object that is new or has changed.
type ObstacleSeen struct {
	Watch  *ObstacleWatch
	Object *metav1.PartialObjectMetadata
}

// ObstacleGone reports that an object that the watch has shown was deleted, or is a copy now.
type ObstacleGone struct {
	Watch  *ObstacleWatch
	Object *metav1.PartialObjectMetadata
}

// ObstacleWatchChanged is the state of the watch.
type ObstacleWatchChanged struct {
	Watch  *ObstacleWatch
	Status watchset.Status
}

// Elected reports that this replica leads from now on: it reviews all known distributions.
type Elected struct{}

// Started reports that a worker has taken a Key from the queue. A Started, or an answer, leads to at most one Request.
type Started struct{ Key }

// ObstaclesFound is the answer to a ListObstacles.
type ObstaclesFound struct {
	ListObstacles
	Objects []*metav1.PartialObjectMetadata
	Err     error
}

// StatusWritten is the answer to a WriteStatus.
type StatusWritten struct {
	WriteStatus
	NewVersion string
	Err        error
}

// CopyWritten is the answer to a WriteCopy.
type CopyWritten struct {
	WriteCopy
	Answer Answer
	Err    error
}

// Answer is what the requests for one WriteCopy have shown.
type Answer struct {
	// Written is the object as a write has left it.
	Written *metav1.PartialObjectMetadata
	// Found is the object that a create has found in the slot.
	Found *metav1.PartialObjectMetadata
	// Absent reports that there is no such object, Deleted that the API server has accepted its deletion.
	Absent, Deleted bool
	// Compared reports that the object was read whole, Same that it has the template's content and, for a copy, the
	// template's labels and annotations.
	Compared, Same bool
}

// DriftFound reports that this version of a copy differs from the template.
type DriftFound struct {
	Slot                 copies.Slot
	UID, ResourceVersion string
}

// Output is something that the caller must do or report because of an Input.
type Output = copies.Output

// Queue asks for keys to be queued.
type Queue = copies.Queue[Key]

// FollowObstacles reports that State.ObstacleWatches may have changed.
type FollowObstacles struct{}

// RolloutEnded reports that a change of a ResourceDistribution is in force everywhere, and when the change came. It is
// for metrics.
type RolloutEnded struct{ Since time.Time }

// Request is an Output that a worker carries out: it makes the requests and applies their answer.
type Request interface{ isRequest() }

// ListObstacles asks for a list of the objects that a new ObstacleWatch would show; the answer is an ObstaclesFound.
type ListObstacles struct {
	ObstacleWatch
	of *Distribution // as it was at the request
}

// WriteStatus asks for a write of a status; the answer is a StatusWritten.
type WriteStatus struct {
	Name, UID, ResourceVersion string
	Status                     v1alpha1.ResourceDistributionStatus

	run     *run
	of      *Distribution                       // as it was when this status was found
	was     v1alpha1.ResourceDistributionStatus // the status before
	urgent  bool                                // no copy is written before this status
	results []Result
}

// WriteCopy asks for the requests that carry out an Action; the answer is a CopyWritten.
type WriteCopy struct {
	Slot     copies.Slot
	Resource schema.GroupVersionResource
	Action   Action
	// Copy is the copy in the slot, as it is known; nil if there is none.
	Copy *Copy
	// Distribution is as it was when this was planned; nil for one that is deleted.
	Distribution *Distribution
	// Confirm asks to read first whether the distribution still exists, because the copy has been deleted: perhaps by
	// the garbage collector.
	Confirm bool

	by     string         // the name of the distribution
	run    *run           // nil for a distribution that is deleted
	flight *mirror.Flight // dates what the answer shows
}

func (ListObstacles) isRequest() {}
func (WriteStatus) isRequest()   {}
func (WriteCopy) isRequest()     {}

func (w WriteCopy) key() Key { return Key{w.by, w.Slot.Namespace} }

// SeenVersion returns the resourceVersion of the copy or obstacle for which the write was planned.
func (w WriteCopy) SeenVersion() string {
	if w.Copy != nil {
		return w.Copy.ResourceVersion
	}
	return w.Action.Conflict.ResourceVersion
}

// isOutdated reports whether the distribution's spec has changed since the request was planned.
func (c CopyWritten) isOutdated() bool { return c.run != nil && c.run.Distribution != c.Distribution }
