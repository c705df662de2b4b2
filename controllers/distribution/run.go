package distribution

import (
	"sync"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// run is what is known of one ResourceDistribution, as long as it is the same object (UID).
type run struct {
	name, uid string    // never change
	troubles  *troubles // troubles and deeds have locks of their own
	deeds     *deeds

	// mu guards in. It is taken in this file only. While it is held, only facts and troubles are called, whose locks are the
	// innermost; nothing is queued, sent or begun.
	mu sync.Mutex
	in progress
}

func newRun(d *distribute.Distribution, status v1alpha1.ResourceDistributionStatus) *run {
	return &run{name: d.Name, uid: d.UID, troubles: newTroubles(), deeds: &deeds{}, in: newProgress(d, status)}
}

// distribution returns the present spec.
func (r *run) distribution() *distribute.Distribution {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in.Distribution
}

// follows says whether the run has this object's UID, generation and deletion already.
func (r *run) follows(rd *v1alpha1.ResourceDistribution) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uid == string(rd.UID) && r.in.Generation == rd.Generation && r.in.Deleting == (rd.DeletionTimestamp != nil)
}

// takeStatus takes the status of an object that the run follows, and says whether it differs from the one reported last.
func (r *run) takeStatus(rd *v1alpha1.ResourceDistribution) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in.takeStatus(rd)
}

// takeSpec replaces the spec, and clears all troubles, because the API server may accept the new template.
func (r *run) takeSpec(d *distribute.Distribution, status v1alpha1.ResourceDistributionStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.takeSpec(d, status)
	r.troubles.reset()
}

// drop marks the run as that of a deleted distribution, and stops its watch of obstacles.
func (r *run) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.dropped = true
	r.in.stopWatch()
}

// noteOpen records that a target is queued.
func (r *run) noteOpen(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.open[namespace] = true
}

// dueForReview says whether a review is due now, because no target is open (idle), or else must be queued for later, because none
// is (late).
func (r *run) dueForReview(now time.Time, pace time.Duration) (idle, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	idle, late = len(r.in.open) == 0, r.in.dueAt.IsZero() || now.After(r.in.dueAt)
	if !idle && late {
		r.in.dueAt = now.Add(pace)
	}
	return idle, late
}

// findAffected returns the keys of the namespaces that a change of the forest concerns.
func (r *run) findAffected(f *facts, change view.Change) []key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in.findAffected(change, f.settings.Protected, f.copies)
}

// beginReview returns the spec to review, and the check for conflicts that it has passed before; ok is false if the distribution is
// deleted.
func (r *run) beginReview() (d *distribute.Distribution, admitted string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in.Deleting || r.in.dropped {
		return nil, "", false
	}
	r.in.dueAt = time.Time{}
	return r.in.Distribution, r.in.admitted, true
}

// noteLook stores the obstacles that a list has found.
func (r *run) noteLook(found map[string]*distribute.Obstacle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.looked, r.in.obstacles = true, found
}

// judge judges all targets of d together. looked says that obstacles were listed for this review.
func (r *run) judge(f *facts, snapshot *forest.Snapshot, d *distribute.Distribution, looked bool) (judgement, step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in.Distribution != d || r.in.dropped {
		return judgement{}, overtaken
	}
	s := &scene{
		forest: snapshot, protected: f.settings.Protected, now: time.Now(),
		copies: f.copies.findFamily(d.Template.Family()), troubles: r.troubles.all(),
	}
	r.in.recordNames(snapshot)
	results := r.in.planAll(s)
	if !looked && r.in.mustLook(results) {
		return judgement{}, mustLook
	}
	return r.in.judge(s, results), judged
}

// noteReported records that the status says what it must say before anything is written.
func (r *run) noteReported() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.unreported = false
}

// findWrites returns the keys of the targets that a review wants written and that are neither queued nor put off.
func (r *run) findWrites(results []distribute.Result) []key {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.in.Distributes() {
		return nil
	}
	var keys []key
	now := time.Now()
	for _, one := range results {
		if one.Verb == distribute.Nothing || r.in.open[one.Namespace] {
			continue
		}
		if t, troubled := r.troubles.find(one.Namespace); !troubled || t.isPast(now) {
			keys = append(keys, key{r.name, one.Namespace})
		}
	}
	return keys
}

// planWrite takes a target off the queue and plans it; ok is false where nothing is to be written now.
func (r *run) planWrite(f *facts, namespace string) (w work, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.in.open, namespace); len(r.in.open) == 0 {
		r.in.open = map[string]bool{} // a map that has been large keeps its memory
	}
	d := r.in.Distribution
	if r.in.dropped || !d.Distributes() || !f.runs.isSynced() {
		return w, false
	}
	kind := f.kinds.find(d.Template.Kind.GroupKind())
	if kind.state != copies.KindActive {
		return w, false
	}
	if r.in.judged != d || r.in.unreported {
		return w, false // the review comes first, and queues this target again
	}
	w = work{run: r, distribution: d, slot: d.Template.Slot(namespace), resource: kind.resource}
	w.copy = f.copies.find(w.slot)
	if _, w.action = r.in.planAt(f.view.Snapshot(), f.settings.Protected, namespace, w.copy); w.action.Verb == distribute.Nothing {
		r.troubles.clear(namespace)
		return w, false
	}
	if t, troubled := r.troubles.find(namespace); troubled && time.Now().Before(t.until) {
		return w, false // the target is queued for that time already
	}
	return w, true
}

// planReport returns the status for a review of d, and counts it as sent if it is to be written now. ok is false if d is not the
// present spec.
func (r *run) planReport(d *distribute.Distribution, found distribute.Review, urgent bool, timing *Timing) (now report, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in.dropped || r.in.Distribution != d {
		return now, false
	}
	if now = r.in.planReport(found, urgent, timing); now.isNews && now.wait == 0 {
		r.in.reportedAt = time.Now()
	}
	return now, true
}

// noteStatus records that a status was written, and the object's new resourceVersion.
func (r *run) noteStatus(sent report, resourceVersion string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.in.resourceVersion == sent.resourceVersion {
		r.in.resourceVersion = resourceVersion
	}
	r.in.reported = sent.now
}

// lastReport returns the status that was reported last, and the template, which is nil if the spec has no valid one.
func (r *run) lastReport() (v1alpha1.ResourceDistributionStatus, *distribute.Template) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in.reported, r.in.Template
}

// began returns when the present spec was first seen.
func (r *run) began() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.in.began
}

// replaceObstacles replaces all obstacles by those that a watch has listed. It returns the namespaces that have none any more.
func (r *run) replaceObstacles(w *obstacleWatch, found map[string]*distribute.Obstacle) (freed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for namespace, known := range r.in.obstacles {
		if found[namespace] == nil {
			freed = append(freed, namespace)
		} else {
			found[namespace] = keepExamined(known, found[namespace])
		}
	}
	w.synced, r.in.obstacles = true, found
	return freed
}

// changeObstacle replaces the obstacle in a namespace by what change returns for it; nil stands for none. change must take no lock.
func (r *run) changeObstacle(namespace string, change func(known *distribute.Obstacle) *distribute.Obstacle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.changeObstacle(namespace, change)
}

// noteObstacle records an obstacle that a create has found. It returns the watch that the caller must begin, or nil.
func (r *run) noteObstacle(namespace string, o *distribute.Obstacle) *obstacleWatch {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.obstacles[namespace] = o
	return r.in.beginWatch()
}
