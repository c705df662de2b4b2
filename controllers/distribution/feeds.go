package distribution

import (
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// distributionFeed is the sink of the watch on ResourceDistributions. Only it adds and removes runs, and its methods are called one
// at a time.
type distributionFeed struct {
	settings *Settings
	runs     *runs
	copies   *copyTable
	queue    *queue
}

func (f *distributionFeed) replace(all []*v1alpha1.ResourceDistribution) {
	there := make(map[string]bool, len(all))
	for _, rd := range all {
		there[rd.Name] = true
		f.put(rd)
	}
	for _, r := range f.runs.list() {
		if !there[r.name] {
			f.forget(r)
		}
	}
	f.runs.setSynced(true) // only now, so that nothing is written for a deleted distribution
	f.queue.add(findAll(f.runs, f.copies)...)
}

func (f *distributionFeed) put(rd *v1alpha1.ResourceDistribution) {
	known := f.runs.find(rd.Name)
	if known != nil && f.runs.isSynced() && known.follows(rd) {
		if known.takeStatus(rd) {
			f.queue.add(key{distribution: rd.Name})
		}
		return
	}
	d := distribute.Read(rd, f.settings.Settings) // this takes some milliseconds for a large resource
	if known != nil {
		f.unwant(known)
	}
	if known != nil && known.uid == d.UID {
		known.takeSpec(d, rd.Status)
	} else {
		if known != nil {
			known.drop()
		}
		f.runs.put(newRun(d, rd.Status)) // without a gap: while no run has its name, its copies are treated as a deleted distribution's
	}
	if d.Template != nil {
		f.copies.want(d.Template.Family(), d.Name)
	}
	f.queue.add(key{distribution: rd.Name})
}

func (f *distributionFeed) gone(rd *v1alpha1.ResourceDistribution) {
	if known := f.runs.find(rd.Name); known != nil && known.uid == string(rd.UID) {
		f.forget(known)
	}
	f.queue.add(key{distribution: rd.Name})
}

// forget removes the run of a ResourceDistribution.
func (f *distributionFeed) forget(r *run) {
	f.unwant(r)
	r.drop() // first, so that nothing is planned for it any more when its copies are released
	f.runs.remove(r.name)
}

// unwant records that the run's present spec wants no copies any more.
func (f *distributionFeed) unwant(r *run) {
	if t := r.distribution().Template; t != nil {
		f.copies.unwant(t.Family(), r.name)
	}
}

// findAll returns the keys of all distributions, and of deleted ones that have left copies.
func findAll(r *runs, copies *copyTable) []key {
	names := copies.findWriters(nil)
	for _, one := range r.list() {
		names[one.name] = true
	}
	keys := make([]key, 0, len(names))
	for name := range names {
		keys = append(keys, key{distribution: name})
	}
	return keys
}
