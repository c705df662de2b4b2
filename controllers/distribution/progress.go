package distribution

import (
	"encoding/json"
	"reflect"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// progress is how far one distribution is. It is not safe for concurrent use: its run guards it with its lock.
type progress struct {
	*distribute.Distribution
	dropped bool // there is no such distribution any more
	// resourceVersion and reported are those of the object and its status as they were read or written last.
	resourceVersion string
	reported        v1alpha1.ResourceDistributionStatus
	reportedAt      time.Time
	admitted        string // the check for conflicts that has passed
	gate            distribute.Gate
	// judged is what the gate was decided for, and unreported says that a restart must know of it before anything is written, and no
	// status says so yet.
	judged     *distribute.Distribution
	unreported bool
	looked     bool // somebody has looked for obstacles since this replica knows the distribution
	// open are the namespaces that are queued or worked on.
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
		Distribution: d, resourceVersion: d.ResourceVersion, reported: status, admitted: status.Admitted, began: time.Now(),
		open: map[string]bool{}, obstacles: map[string]*distribute.Obstacle{},
	}
	if status.Rollout != nil && status.Rollout.NextBatchTime != nil {
		p.next = status.Rollout.NextBatchTime.Time
	}
	return p
}

// takeStatus takes the status of a spec that is known, and says whether it is another than the one reported: wiped, or forged.
func (p *progress) takeStatus(rd *v1alpha1.ResourceDistribution) (changed bool) {
	p.resourceVersion = rd.ResourceVersion
	if reflect.DeepEqual(p.reported, rd.Status) {
		return false
	}
	if p.admitted != rd.Status.Admitted {
		p.judged = nil
	}
	p.reported, p.admitted = rd.Status, rd.Status.Admitted
	return true
}

// takeSpec takes another spec.
func (p *progress) takeSpec(d *distribute.Distribution, status v1alpha1.ResourceDistributionStatus) {
	if p.Template == nil || d.Template == nil || p.Template.Content != d.Template.Content {
		p.batch = nil
	}
	p.Distribution, p.resourceVersion, p.reported, p.began = d, d.ResourceVersion, status, time.Now()
}

// findAffected are the keys of what a change of the forest concerns: namespaces that are targets now, or were before.
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
		was := p.Targets.Choose(change.Old, namespace, protected)
		is, action := p.planAt(change.New, protected, namespace, copies.find(p.Template.Slot(namespace)))
		same := change.Old != change.New && was == is && (old == nil) == (now == nil) && (old == nil || old.UID == now.UID)
		if same && action.Verb == distribute.Nothing {
			continue
		}
		keys = append(keys, key{p.Name, namespace})
		if mentioned[namespace] {
			keys = append(keys, key{distribution: p.Name})
		}
	}
	return keys
}

// report is a status that is to be written, or why it is not.
type report struct {
	was, now        v1alpha1.ResourceDistributionStatus
	resourceVersion string
	isNews          bool          // now is another status than was
	wait            time.Duration // until it may be written; 0 for at once
}

// planReport makes the status that says what a review has found: one that is not urgent, not more often than timing says.
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

// planAt says what to do in one namespace, in which that copy stands, if any.
func (p *progress) planAt(f *forest.Snapshot, protected func(string) bool, namespace string, standing *distribute.Copy) (distribute.Choice, distribute.Action) {
	t := distribute.Target{
		Namespace: namespace, Choice: p.Targets.Choose(f, namespace, protected), Copy: standing, Obstacle: p.obstacles[namespace],
	}
	return t.Choice, p.Plan(t, p.gate)
}

// holdsOurs says whether the copy of this distribution stands in a namespace.
func (p *progress) holdsOurs(standing *distribute.Copy) bool {
	return standing != nil && standing.Ours && standing.By == p.Name
}

// changeObstacle replaces what is known to stand in the way in a namespace.
func (p *progress) changeObstacle(namespace string, change func(known *distribute.Obstacle) *distribute.Obstacle) {
	if o := change(p.obstacles[namespace]); o != nil {
		p.obstacles[namespace] = o
	} else {
		delete(p.obstacles, namespace)
	}
}

// beginWatch returns a watch of obstacles that is to begin; nil if there is one.
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

// normalise is a status as the API server returns it.
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
