package distribute

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// run is what is known of one ResourceDistribution, as long as it is the same object (UID).
type run struct {
	*Distribution
	began time.Time // when the present spec was first seen
	// resourceVersion and reported are those of the object and its status as they were read or written last.
	resourceVersion string
	reported        v1alpha1.ResourceDistributionStatus
	reportedAt      time.Time
	failedStatus    failedStatus
	admitted        string // the value of Check for which the check for conflicts has passed
	named           Named  // which namespaces the names in the spec mean
	mayCreate       bool   // the check for conflicts has passed, so copies may be created
	// judged is the spec for which mayCreate was decided. unreported reports that the status must still record that decision, or a change of
	// named, before anything is written.
	judged     *Distribution
	unreported bool

	open     map[string]bool    // the targets that are queued
	dueAt    time.Time          // when a review is due that was put off
	troubles map[string]trouble // by namespace
	vanished map[string]bool    // namespaces whose copy was deleted, until it is created again
	deeds    map[v1alpha1.Reason][]string

	obstacles map[string]*Obstacle // by namespace
	looked    bool                 // obstacles have been listed since this replica knows the distribution
	watch     *ObstacleWatch       // nil while there is no obstacle
	watching  bool                 // the watch shows all obstacles
	unwatched watchset.Status      // why the watch shows nothing, as it has reported last; zero if it has reported no error
	lookAt    time.Time            // when obstacles that are not watched are listed again; zero if that was not planned yet
}

// failedStatus describes the writes of the status that have failed in a row, up to the last one.
type failedStatus struct {
	tries int
	until time.Time // when the next try is due
}

func newRun(d *Distribution, status v1alpha1.ResourceDistributionStatus, now time.Time) *run {
	return &run{
		Distribution: d, resourceVersion: d.ResourceVersion, reported: status, admitted: status.Admitted, named: d.Named, began: now,
		open: map[string]bool{}, obstacles: map[string]*Obstacle{}, troubles: map[string]trouble{}, vanished: map[string]bool{},
	}
}

// isOwn reports whether c, which may be nil, is a copy of this distribution.
func (r *run) isOwn(c *Copy) bool { return c != nil && c.Ours && c.By == r.Name }

// changeObstacle replaces the obstacle in a namespace; nil stands for none.
func (r *run) changeObstacle(namespace string, now *Obstacle) {
	if now == nil {
		delete(r.obstacles, namespace)
		return
	}
	r.obstacles[namespace] = now
}

// keepWatch begins a watch of obstacles, unless there is one.
func (s *State) keepWatch(r *run) {
	if r.watch == nil {
		w := s.obstacleWatchOf(r)
		r.watch, r.watching, r.unwatched, r.lookAt = &w, false, watchset.Status{}, time.Time{}
		s.emitOutput(FollowObstacles{})
	}
}

// stopWatch ends the watch of obstacles, if there is one.
func (s *State) stopWatch(r *run) {
	if r.watch != nil {
		r.watch = nil
		s.emitOutput(FollowObstacles{})
	}
}

func (s *State) obstacleWatchOf(r *run) ObstacleWatch {
	gk := r.Template.Kind.GroupKind()
	return ObstacleWatch{Distribution: r.Name, Kind: gk, Name: r.Template.Name, Resource: s.kinds[gk].resource}
}

// ObstacleWatches returns the watches of obstacles that must exist now.
func (s *State) ObstacleWatches() map[*ObstacleWatch]bool {
	all := map[*ObstacleWatch]bool{}
	for _, r := range s.runs {
		if r.watch != nil {
			all[r.watch] = true
		}
	}
	return all
}

// findWatching returns the run whose watch of obstacles this is; nil if the watch has ended.
func (s *State) findWatching(w *ObstacleWatch) *run {
	if r := s.runs[w.Distribution]; r != nil && r.watch == w {
		return r
	}
	return nil
}

// queueLook queues the next list of obstacles that no watch shows, unless one is queued already.
func (s *State) queueLook(r *run) {
	if r.watching || s.now.Before(r.lookAt) {
		return
	}
	r.lookAt = s.now.Add(s.options.RetryMax)
	s.queueAfter(reviewKey(r.Name), s.options.RetryMax)
}

// isLookDue reports whether obstacles that no watch shows must be listed again.
func (r *run) isLookDue(now time.Time) bool {
	return r.watch != nil && !r.watching && !r.lookAt.IsZero() && !now.Before(r.lookAt)
}

func (c ObstacleWatchChanged) applyTo(s *State) {
	r := s.findWatching(c.Watch)
	if r == nil {
		return
	}
	switch r.watching = c.Status.State == watchset.Synced; {
	case r.watching:
		r.unwatched = watchset.Status{}
	case c.Status.Err != nil: // a new try to list changes nothing before it has ended
		r.unwatched = c.Status
	}
	s.queue(reviewKey(r.Name))
}

func (l ObstaclesListed) applyTo(s *State) {
	if r := s.findWatching(l.Watch); r != nil {
		s.queue(append(r.replaceObstacles(s.readObstacles(l.Watch.Kind, l.Objects)), reviewKey(r.Name))...)
	}
}

// replaceObstacles replaces all known obstacles, and returns the keys of the targets that have none any more.
func (r *run) replaceObstacles(found map[string]*Obstacle) (gone []Key) {
	for namespace, known := range r.obstacles {
		if found[namespace] == nil {
			gone = append(gone, Key{r.Name, namespace})
		} else {
			found[namespace] = keepExamined(known, found[namespace])
		}
	}
	r.obstacles = found
	return gone
}

func (o ObstacleSeen) applyTo(s *State) {
	if r := s.findWatching(o.Watch); r != nil {
		namespace := o.Object.Namespace
		r.changeObstacle(namespace, keepExamined(r.obstacles[namespace], s.readObstacle(o.Watch.Kind, o.Object)))
		s.queue(Key{r.Name, namespace}, reviewKey(r.Name))
	}
}

func (o ObstacleGone) applyTo(s *State) {
	r := s.findWatching(o.Watch)
	if r == nil {
		return
	}
	if known := r.obstacles[o.Object.Namespace]; known != nil && known.UID == string(o.Object.UID) {
		delete(r.obstacles, o.Object.Namespace)
	}
	s.queue(Key{r.Name, o.Object.Namespace}, reviewKey(r.Name))
}

// readObstacle returns an object as an obstacle; nil if it has the label distributed-by, because the table of copies has such objects.
func (s *State) readObstacle(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) *Obstacle {
	if _, labelled := meta.Labels[v1alpha1.LabelDistributedBy]; labelled {
		return nil
	}
	mode, opted := meta.Labels[v1alpha1.LabelPropagate]
	o := ReadObstacle(meta, opted && mode != v1alpha1.ModeNone)
	o.Covered = !opted && s.options.Covered(gk) && o.Reason != v1alpha1.ReasonBeingDeleted && o.Reason != v1alpha1.ReasonPropagated
	return o
}

func (s *State) readObstacles(gk schema.GroupKind, all []*metav1.PartialObjectMetadata) map[string]*Obstacle {
	found := make(map[string]*Obstacle, len(all))
	for _, meta := range all {
		if o := s.readObstacle(gk, meta); o != nil {
			found[meta.Namespace] = o
		}
	}
	return found
}

// keepExamined returns known if it is the same version of the object as now, because known may have been examined; else now.
func keepExamined(known, now *Obstacle) *Obstacle {
	if known != nil && now != nil && known.UID == now.UID && known.ResourceVersion == now.ResourceVersion {
		return known
	}
	return now
}
