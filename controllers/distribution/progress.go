package distribution

import (
	"encoding/json"
	"maps"
	"reflect"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// progress is the state of one distribution's rollout. It is not safe for concurrent use: the lock of its run guards it.
type progress struct {
	*distribute.Distribution
	dropped bool // there is no such distribution any more
	// resourceVersion and reported are those of the object and its status as they were read or written last.
	resourceVersion string
	reported        v1alpha1.ResourceDistributionStatus
	reportedAt      time.Time
	admitted        string           // the check for conflicts that has passed
	named           distribute.Named // which namespaces the names in the spec mean
	gate            distribute.Gate
	// judged is the spec for which the gate was decided. unreported says that the status must record that decision before anything
	// is written, and doesn't yet.
	judged     *distribute.Distribution
	unreported bool
	looked     bool // obstacles have been listed since this replica knows the distribution
	// open are the targets that are queued or being written.
	open      map[string]bool
	obstacles map[string]*distribute.Obstacle // by namespace
	watch     *obstacleWatch                  // nil while nothing stands in the way
	batch     map[string]bool
	next      time.Time // when the next batch may begin
	began     time.Time // when the present change was first seen
	dueAt     time.Time // when a review is due that was put off
}

func newProgress(d *distribute.Distribution, status v1alpha1.ResourceDistributionStatus) progress {
	p := progress{
		Distribution: d, resourceVersion: d.ResourceVersion, reported: status, admitted: status.Admitted, named: d.Named, began: time.Now(),
		open: map[string]bool{}, obstacles: map[string]*distribute.Obstacle{},
	}
	if status.Rollout != nil && status.Rollout.NextBatchTime != nil {
		p.next = status.Rollout.NextBatchTime.Time
	}
	return p
}

// takeStatus takes the status of an object whose spec hasn't changed. It says whether the status differs from the one reported
// last, because somebody else has written it.
func (p *progress) takeStatus(rd *v1alpha1.ResourceDistribution) (changed bool) {
	p.resourceVersion = rd.ResourceVersion
	if reflect.DeepEqual(p.reported, rd.Status) {
		return false
	}
	named := p.Targets.ReadNamed(&rd.Status)
	if p.admitted != rd.Status.Admitted || !maps.Equal(p.named, named) {
		p.judged = nil
	}
	p.reported, p.admitted, p.named = rd.Status, rd.Status.Admitted, named
	return true
}

// takeSpec replaces the spec, and restarts the batches if the template's content changed.
func (p *progress) takeSpec(d *distribute.Distribution, status v1alpha1.ResourceDistributionStatus) {
	if p.Template == nil || d.Template == nil || p.Template.Content != d.Template.Content {
		p.batch = nil
	}
	if d.Problem != "" { // nothing is written, so obstacles don't matter; they are listed anew when the problem is solved
		p.stopWatch()
		p.obstacles, p.looked = map[string]*distribute.Obstacle{}, false
	}
	p.Distribution, p.resourceVersion, p.reported, p.named, p.began = d, d.ResourceVersion, status, d.Named, time.Now()
}

// findAffected returns the keys of the namespaces that a change of the forest concerns: they are targets now or were before, or
// have a copy.
func (p *progress) findAffected(change view.Change, protected func(string) bool, copies *copyTable) []key {
	if p.Problem != "" || p.dropped {
		return nil
	}
	mentioned := map[string]bool{}
	for _, one := range p.Targets.Named() {
		mentioned[one] = true
	}
	var keys []key
	for _, namespace := range change.Namespaces {
		old, now := change.Old.Namespace(namespace), change.New.Namespace(namespace)
		was := p.Targets.Choose(change.Old, namespace, protected, p.named)
		is, action := p.planAt(change.New, protected, namespace, copies.find(p.Template.Slot(namespace)))
		same := change.Old != change.New && was == is && (old == nil) == (now == nil) && (old == nil || old.UID == now.UID)
		if !same || action.Verb != distribute.Nothing {
			keys = append(keys, key{p.Name, namespace})
		} else if now == nil || p.named.Means(change.New, namespace) {
			continue
		}
		if mentioned[namespace] {
			keys = append(keys, key{distribution: p.Name})
		}
	}
	return keys
}

// report is a status to be written, or the reason why it isn't written now.
type report struct {
	was, now        v1alpha1.ResourceDistributionStatus
	resourceVersion string
	isNews          bool          // now is another status than was
	wait            time.Duration // until it may be written; 0 for at once
}

// planReport returns the status for a review's result. Unless it is urgent, its wait keeps writes as far apart as timing says.
func (p *progress) planReport(found distribute.Review, urgent bool, timing *Timing) report {
	r := report{was: p.reported, resourceVersion: p.resourceVersion}
	r.now = normalise(p.Status(found, &r.was))
	r.isNews = !reflect.DeepEqual(r.was, r.now)
	pace := timing.Last
	if ready := v1alpha1.FindCondition(r.now.Conditions, v1alpha1.ConditionReady); ready.Reason == string(v1alpha1.ReasonProgressing) {
		pace = timing.Pace
	}
	if wait := time.Until(p.reportedAt.Add(pace)); !urgent && wait > 0 {
		r.wait = wait
	}
	return r
}

// planAt plans one namespace. standing is the copy there, or nil.
func (p *progress) planAt(f *forest.Snapshot, protected func(string) bool, namespace string, standing *distribute.Copy) (distribute.Choice, distribute.Action) {
	t := distribute.Target{
		Namespace: namespace, Choice: p.Targets.Choose(f, namespace, protected, p.named), Copy: standing, Obstacle: p.obstacles[namespace],
	}
	return t.Choice, p.Plan(t, p.gate)
}

// holdsOurs says whether standing, which may be nil, is a copy of this distribution.
func (p *progress) holdsOurs(standing *distribute.Copy) bool {
	return standing != nil && standing.Ours && standing.By == p.Name
}

// changeObstacle replaces the obstacle in a namespace by what change returns for it; nil stands for none.
func (p *progress) changeObstacle(namespace string, change func(known *distribute.Obstacle) *distribute.Obstacle) {
	if o := change(p.obstacles[namespace]); o != nil {
		p.obstacles[namespace] = o
	} else {
		delete(p.obstacles, namespace)
	}
}

// beginWatch returns a new watch of obstacles, which the caller must begin; nil if there is one already.
func (p *progress) beginWatch() *obstacleWatch {
	if p.watch != nil || p.dropped {
		return nil
	}
	p.watch = newObstacleWatch()
	return p.watch
}

// stopWatch ends the watch of obstacles, if there is one.
func (p *progress) stopWatch() {
	if p.watch != nil {
		p.watch.cancel()
		p.watch = nil
	}
}

// normalise returns a status as the API server would return it, so that both can be compared.
func normalise(s v1alpha1.ResourceDistributionStatus) v1alpha1.ResourceDistributionStatus {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // no channels, no functions
	}
	same := v1alpha1.ResourceDistributionStatus{}
	if err := json.Unmarshal(data, &same); err != nil {
		panic(err)
	}
	return same
}
