package distribute

import (
	"iter"
	"maps"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// run is what is known of one ResourceDistribution, as long as it is the same object (UID).
type run struct {
	*Distribution
	began     time.Time // when the present spec was first seen
	done      doneActions
	gate      *gate
	obstacles *obstacles
	report    *report
	troubles  *troubles
}

// runs are those of all ResourceDistributions that exist.
type runs struct {
	*core
	kinds  *kinds
	copies *copyTable
	byName map[string]*run
}

// all yields all runs.
func (rs *runs) all() iter.Seq[*run] { return maps.Values(rs.byName) }

// at returns the run of the ResourceDistribution with this name; nil if it does not exist.
func (rs *runs) at(name string) *run { return rs.byName[name] }

// takeDistribution takes in a ResourceDistribution that is new or has changed.
func (rs *runs) takeDistribution(rd *v1alpha1.ResourceDistribution) {
	known := rs.byName[rd.Name]
	if known != nil && rs.listed && known.hasSpecOf(rd) {
		if known.report.takeStatus(rd.ResourceVersion, rd.Status) {
			known.gate.takeRecord(rd.Status.Admitted, known.Targets.ReadNamed(&rd.Status))
			rs.queueKeys(reviewKey(rd.Name))
		}
		return
	}
	d := Read(rd, rs.options.Settings)
	if known != nil {
		rs.unwantCopies(known)
	}
	// Of the same object, obstacles and the last report still count; of another one, nothing does.
	if known != nil && known.UID == d.UID {
		known.obstacles.takeSpec(d)
		known.gate.takeSpec(d)
		known.report.takeStatus(d.ResourceVersion, rd.Status)
		known.troubles.clearAll()
		known.Distribution, known.began = d, rs.now
	} else {
		if known != nil {
			known.obstacles.stopWatch()
		}
		rs.addRun(d, rd.Status)
	}
	if d.Template != nil {
		rs.copies.addWanted(d.Template.Family(), d.Name)
	}
	rs.queueKeys(reviewKey(rd.Name))
}

func (rs *runs) addRun(d *Distribution, status v1alpha1.ResourceDistributionStatus) {
	rs.byName[d.Name] = &run{
		Distribution: d, began: rs.now, done: doneActions{}, gate: &gate{admitted: status.Admitted, named: d.Named},
		obstacles: newObstacles(rs.core, rs.kinds), report: &report{resourceVersion: d.ResourceVersion, status: status}, troubles: newTroubles(),
	}
	rs.beginWork(d.Name)
}

// takeAll takes in that exactly these ResourceDistributions exist.
func (rs *runs) takeAll(all []*v1alpha1.ResourceDistribution) {
	there := make(map[string]bool, len(all))
	for _, rd := range all {
		there[rd.Name] = true
		rs.takeDistribution(rd)
	}
	for name := range rs.byName {
		if !there[name] {
			rs.dropRun(name, rs.byName[name].UID)
		}
	}
	rs.recordListed() // only now, so that nothing is taken for a copy of a deleted distribution
	rs.queueAll()
}

// dropRun removes the run of a ResourceDistribution that is gone, if it is the one with this UID.
func (rs *runs) dropRun(name, uid string) {
	if r := rs.byName[name]; r != nil && r.UID == uid {
		rs.unwantCopies(r)
		r.obstacles.stopWatch()
		delete(rs.byName, name)
		rs.endWork(name)
	}
}

// queueAll queues the reviews of all distributions, and of deleted ones that have left copies.
func (rs *runs) queueAll() {
	names := rs.copies.findWriters(nil)
	for name := range rs.byName {
		names[name] = true
	}
	for name := range names {
		rs.queueKeys(reviewKey(name))
	}
}

// queueKind queues the reviews of the distributions of a kind, and of deleted ones that have left copies of it.
func (rs *runs) queueKind(c KindChanged) {
	for _, r := range rs.byName {
		if r.Template != nil && r.Template.Kind.GroupKind() == c.Kind {
			rs.queueKeys(reviewKey(r.Name))
		}
	}
	for name := range rs.copies.findWriters(&c.Kind) {
		if rs.byName[name] == nil {
			rs.queueKeys(reviewKey(name))
		}
	}
}

// queueVanished queues keys, and notes those of them that have no copy any more.
func (rs *runs) queueVanished(keys []Key) {
	for _, k := range keys {
		r, exists := rs.byName[k.Distribution], rs.forest.Namespace(k.Namespace) != nil
		if r != nil && exists && r.Template != nil && rs.copies.At(r.Template.Slot(k.Namespace)) == nil {
			r.troubles.recordVanished(k.Namespace)
		}
	}
	rs.queueKeys(keys...)
}

// findWatching returns the run whose watch of obstacles this is; nil if the watch has ended.
func (rs *runs) findWatching(w *ObstacleWatch) *run {
	if r := rs.byName[w.Distribution]; r != nil && r.obstacles.currentWatch() == w {
		return r
	}
	return nil
}

// unwantCopies records that the run's present spec wants no copies any more.
func (rs *runs) unwantCopies(r *run) {
	if r.Template != nil {
		rs.copies.unwantCopies(r.Template.Family(), r.Name)
	}
}

// hasSpecOf reports whether the run has this object's UID, generation and deletion already.
func (r *run) hasSpecOf(rd *v1alpha1.ResourceDistribution) bool {
	return r.UID == string(rd.UID) && r.Generation == rd.Generation && r.Deleting == (rd.DeletionTimestamp != nil)
}
