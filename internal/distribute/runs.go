package distribute

import (
	"encoding/json"
	"maps"
	"reflect"
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
	admitted        string // the value of Check for which the check for conflicts has passed
	named           Named  // which namespaces the names in the spec mean
	gate            Gate
	// judged is the spec for which the gate was decided. unreported reports that the status must still record that decision, or a change of
	// named, before anything is written.
	judged     *Distribution
	unreported bool
	// batch are the targets of the present batch of updates, and next is when the next batch may begin.
	batch map[string]bool
	next  time.Time

	open     map[string]bool    // the targets that are queued
	dueAt    time.Time          // when a review is due that was put off
	troubles map[string]trouble // by namespace
	deeds    map[v1alpha1.Reason][]string

	obstacles map[string]*Obstacle // by namespace
	looked    bool                 // obstacles have been listed since this replica knows the distribution
	watch     *ObstacleWatch       // nil while there is no obstacle
	watching  bool                 // the watch has shown all obstacles
}

func newRun(d *Distribution, status v1alpha1.ResourceDistributionStatus, now time.Time) *run {
	r := &run{
		Distribution: d, resourceVersion: d.ResourceVersion, reported: status, admitted: status.Admitted, named: d.Named, began: now,
		open: map[string]bool{}, obstacles: map[string]*Obstacle{}, troubles: map[string]trouble{},
	}
	if status.Rollout != nil && status.Rollout.NextBatchTime != nil {
		r.next = status.Rollout.NextBatchTime.Time
	}
	return r
}

func (c DefinitionChanged) applyTo(s *State) {
	if c.State == watchset.NotServed {
		if s.listed { // the CRD was deleted, and all objects with it
			DistributionsListed{}.applyTo(s)
		}
		s.served = false
		return
	}
	if !s.served && (c.State == "" || c.Resource.Resource != "") {
		s.served, s.servedAt = true, s.now
	}
}

func (l DistributionsListed) applyTo(s *State) {
	there := make(map[string]bool, len(l.All))
	for _, rd := range l.All {
		there[rd.Name] = true
		s.takeDistribution(rd)
	}
	for name, r := range s.runs {
		if !there[name] {
			s.forgetRun(r)
		}
	}
	s.listed = true // only now, so that nothing is taken for a copy of a deleted distribution
	s.queueAll()
}

func (o DistributionSeen) applyTo(s *State) { s.takeDistribution(o.ResourceDistribution) }

func (s *State) takeDistribution(rd *v1alpha1.ResourceDistribution) {
	known := s.runs[rd.Name]
	if known != nil && s.listed && known.follows(rd) {
		if known.takeStatus(rd) {
			s.queue(reviewKey(rd.Name))
		}
		return
	}
	d := Read(rd, s.options.Settings)
	if known != nil {
		s.unwantCopies(known)
	}
	if known != nil && known.UID == d.UID {
		s.takeSpec(known, d, rd.Status)
	} else {
		if known != nil {
			s.stopWatch(known)
		}
		s.runs[rd.Name] = newRun(d, rd.Status, s.now)
	}
	if d.Template != nil {
		s.copies.want(d.Template.Family(), d.Name)
	}
	s.queue(reviewKey(rd.Name))
}

func (o DistributionGone) applyTo(s *State) {
	if known := s.runs[o.Name]; known != nil && known.UID == string(o.UID) {
		s.forgetRun(known)
	}
	s.queue(reviewKey(o.Name))
}

// forgetRun removes the run of a ResourceDistribution that is gone.
func (s *State) forgetRun(r *run) {
	s.unwantCopies(r)
	s.stopWatch(r)
	delete(s.runs, r.Name)
}

// unwantCopies records that the run's present spec wants no copies any more.
func (s *State) unwantCopies(r *run) {
	if r.Template != nil {
		s.copies.unwantCopies(r.Template.Family(), r.Name)
	}
}

// follows reports whether the run has this object's UID, generation and deletion already.
func (r *run) follows(rd *v1alpha1.ResourceDistribution) bool {
	return r.UID == string(rd.UID) && r.Generation == rd.Generation && r.Deleting == (rd.DeletionTimestamp != nil)
}

// takeStatus takes the status of an object whose spec has not changed. It reports whether the status differs from the one reported last,
// which means that somebody else has written it.
func (r *run) takeStatus(rd *v1alpha1.ResourceDistribution) (changed bool) {
	r.resourceVersion = rd.ResourceVersion
	if reflect.DeepEqual(r.reported, rd.Status) {
		return false
	}
	named := r.Targets.ReadNamed(&rd.Status)
	if r.admitted != rd.Status.Admitted || !maps.Equal(r.named, named) {
		r.judged = nil
	}
	r.reported, r.admitted, r.named = rd.Status, rd.Status.Admitted, named
	return true
}

// takeSpec replaces the spec. It restarts the batches if the template's content has changed, and clears all troubles, because the API
// server may accept the new template. All obstacles become unexamined, because they were compared with the old spec.
func (s *State) takeSpec(r *run, d *Distribution, status v1alpha1.ResourceDistributionStatus) {
	if r.Template == nil || d.Template == nil || r.Template.Content != d.Template.Content {
		r.batch = nil
	}
	if d.Problem != "" { // nothing is written, so obstacles do not matter; they are listed anew when the problem is solved
		s.stopWatch(r)
		r.obstacles, r.looked = map[string]*Obstacle{}, false
	}
	for namespace, o := range r.obstacles {
		r.obstacles[namespace] = o.unexamined()
	}
	r.Distribution, r.resourceVersion, r.reported, r.named, r.began = d, d.ResourceVersion, status, d.Named, s.now
	r.troubles = map[string]trouble{}
}

// placePlan is the plan of one namespace.
type placePlan struct {
	Action
	choice Choice
	copy   *Copy // the copy there; nil if there is none
}

// planAt plans one namespace.
func (s *State) planAt(r *run, namespace string) placePlan {
	t := Target{
		Namespace: namespace, Choice: r.Targets.Choose(s.forest, namespace, s.options.Protected, r.named),
		Copy: s.copies.At(r.Template.Slot(namespace)), Obstacle: r.obstacles[namespace],
	}
	return placePlan{r.Plan(t, r.gate), t.Choice, t.Copy}
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
		r.watch, r.watching = &w, false
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

func (l ObstaclesListed) applyTo(s *State) {
	r := s.findWatching(l.Watch)
	if r == nil {
		return
	}
	found := s.readObstacles(l.Watch.Kind, l.Objects)
	keys := []Key{reviewKey(r.Name)}
	for namespace, known := range r.obstacles {
		if found[namespace] == nil {
			keys = append(keys, Key{r.Name, namespace})
		} else {
			found[namespace] = keepExamined(known, found[namespace])
		}
	}
	r.watching, r.obstacles = true, found
	s.queue(keys...)
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
	source := opted && mode != v1alpha1.ModeNone
	if !opted && s.options.Covered(gk) {
		source = s.forest.Place(meta.Namespace).InTree()
	}
	return ReadObstacle(meta, source)
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

// asReturned returns a status as the API server would return it, so that both can be compared.
func asReturned(s v1alpha1.ResourceDistributionStatus) v1alpha1.ResourceDistributionStatus {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // fails only for channels and functions
	}
	same := v1alpha1.ResourceDistributionStatus{}
	if err := json.Unmarshal(data, &same); err != nil {
		panic(err)
	}
	return same
}
