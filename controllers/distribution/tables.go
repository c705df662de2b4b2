package distribution

import (
	"context"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// run is what is known of one ResourceDistribution.
type run struct {
	*distribute.Distribution
	// reported is the status as it was read or written last.
	reported v1alpha1.ResourceDistributionStatus
	lastSaid time.Time
	admitted string // the check for conflicts that has passed
	gate     distribute.Gate
	// judged is what the gate was decided for, and unreported says that a restart must know of it before anything is written, and no
	// status says so yet.
	judged     *distribute.Distribution
	unreported bool
	looked     bool // somebody has looked for obstacles since this replica knows the distribution
	// open are the namespaces that are queued or worked on.
	open      map[string]bool
	obstacles map[string]*distribute.Obstacle
	watch     *obstacleWatch
	troubles  map[string]*trouble
	done      map[v1alpha1.Reason][]string // namespaces of what is to be told in Events
	batch     map[string]bool
	next      time.Time // when the next batch may begin
	began     time.Time // when the present change was first seen
	dueAt     time.Time // when a review is due that was put off
}

func newRun(d *distribute.Distribution, status v1alpha1.ResourceDistributionStatus) *run {
	r := &run{
		Distribution: d, reported: status, admitted: status.Admitted, began: time.Now(),
		open: map[string]bool{}, obstacles: map[string]*distribute.Obstacle{}, troubles: map[string]*trouble{},
		done: map[v1alpha1.Reason][]string{},
	}
	if status.Rollout != nil && status.Rollout.NextBatchTime != nil {
		r.next = status.Rollout.NextBatchTime.Time
	}
	return r
}

// distributionFeed takes the watch of ResourceDistributions.
type distributionFeed struct{ *Controller }

func (f distributionFeed) lost(error) {}

func (f distributionFeed) replace(all []*v1alpha1.ResourceDistribution) {
	there := make(map[string]bool, len(all))
	for _, rd := range all {
		there[rd.Name] = true
		f.put(rd)
	}
	f.mu.Lock()
	f.synced = true
	for name := range f.runs {
		if !there[name] {
			f.forget(name)
		}
	}
	keys := f.everything()
	f.mu.Unlock()
	f.enqueue(keys...)
}

func (f distributionFeed) put(rd *v1alpha1.ResourceDistribution) {
	f.mu.Lock()
	settings := f.settings
	known := f.runs[rd.Name]
	same := known != nil && known.UID == string(rd.UID) && known.Generation == rd.Generation && known.Deleting == (rd.DeletionTimestamp != nil) && f.synced
	f.mu.Unlock()
	var d *distribute.Distribution
	if !same {
		d = distribute.Read(rd, settings.Settings) // takes a while for a large resource
	}
	f.mu.Lock()
	switch known = f.runs[rd.Name]; {
	case same && known != nil:
		known.ResourceVersion = rd.ResourceVersion
		if reflect.DeepEqual(known.reported, rd.Status) {
			f.mu.Unlock()
			return
		}
		if known.admitted != rd.Status.Admitted {
			known.judged = nil
		}
		known.reported, known.admitted = rd.Status, rd.Status.Admitted // wiped, or forged
	case d == nil:
		f.mu.Unlock()
		f.put(rd) // it was forgotten meanwhile
		return
	case known == nil || known.UID != d.UID:
		f.forget(rd.Name)
		f.runs[rd.Name] = newRun(d, rd.Status)
	default:
		f.unname(known)
		if known.Template == nil || d.Template == nil || known.Template.Content != d.Template.Content {
			known.batch = nil
		}
		known.Distribution, known.reported, known.began = d, rd.Status, time.Now()
		known.troubles = map[string]*trouble{} // what was refused may be right now
	}
	if d != nil && d.Template != nil {
		of := d.Template.Family()
		if f.named[of] == nil {
			f.named[of] = map[string]bool{}
		}
		f.named[of][rd.Name] = true
	}
	f.mu.Unlock()
	f.enqueue(key{distribution: rd.Name})
}

func (f distributionFeed) gone(rd *v1alpha1.ResourceDistribution) {
	f.mu.Lock()
	if known := f.runs[rd.Name]; known != nil && known.UID == string(rd.UID) {
		f.forget(rd.Name)
	}
	f.mu.Unlock()
	f.enqueue(key{distribution: rd.Name})
}

// forget drops what is known of a ResourceDistribution. The caller holds the lock.
func (c *Controller) forget(name string) {
	r := c.runs[name]
	if r == nil {
		return
	}
	c.unname(r)
	r.stopWatch()
	delete(c.runs, name)
}

func (c *Controller) unname(r *run) {
	if r.Template != nil {
		of := r.Template.Family()
		if delete(c.named[of], r.Name); len(c.named[of]) == 0 {
			delete(c.named, of)
		}
	}
}

// copyFeed takes the watch of a kind's copies.
type copyFeed struct {
	*Controller
	kind     *kind
	vanished context.CancelFunc
}

func (f *copyFeed) replace(all []*metav1.PartialObjectMetadata) {
	f.mu.Lock()
	there := make(map[propagate.Slot]bool, len(all))
	var keys []key
	for _, meta := range all {
		there[f.slot(meta)] = true
		keys = append(keys, f.putCopy(meta)...)
	}
	for slot := range f.copies.All() {
		if slot.Kind == f.kind.GroupKind() && !there[slot] {
			keys = append(keys, f.dropCopy(slot)...)
		}
	}
	f.mu.Unlock()
	f.setState(f.kind, kindActive)
	f.enqueue(keys...)
}

func (f *copyFeed) put(meta *metav1.PartialObjectMetadata) {
	f.mu.Lock()
	keys := f.putCopy(meta)
	f.mu.Unlock()
	f.enqueue(keys...)
}

func (f *copyFeed) gone(meta *metav1.PartialObjectMetadata) {
	f.mu.Lock()
	f.noteSeen(meta.ResourceVersion)
	var keys []key
	if known := f.copies.At(f.slot(meta)); known != nil && known.UID == string(meta.UID) {
		keys = f.dropCopy(f.slot(meta))
	}
	f.mu.Unlock()
	f.enqueue(keys...)
}

func (f *copyFeed) lost(err error) {
	if apierrors.IsNotFound(err) {
		f.vanished()
		return
	}
	f.setState(f.kind, kindForbidden)
}

func (f *copyFeed) slot(meta *metav1.PartialObjectMetadata) propagate.Slot {
	return propagate.Slot{Kind: f.kind.GroupKind(), Namespace: meta.Namespace, Name: meta.Name}
}

func (f *copyFeed) noteSeen(resourceVersion string) {
	if view.Newer(resourceVersion, f.kind.seen) || f.kind.seen == "" {
		f.kind.seen = resourceVersion
	}
}

// putCopy takes what a watch shows. The caller holds the lock.
func (f *copyFeed) putCopy(meta *metav1.PartialObjectMetadata) []key {
	f.noteSeen(meta.ResourceVersion)
	slot := f.slot(meta)
	known := f.copies.At(slot)
	if known != nil && known.UID != string(meta.UID) {
		known = nil
	}
	if known != nil && !view.Newer(meta.ResourceVersion, known.ResourceVersion) {
		return nil // our own write's answer came first
	}
	one := f.reader.Copy(slot, meta)
	if known != nil && known.Known {
		one.Known = true
		one.Drifted = known.Drifted || one.Digest != known.Digest
	}
	return f.setCopy(slot, one)
}

// setCopy puts a copy into the tables, and says who is concerned. The caller holds the lock.
func (c *Controller) setCopy(slot propagate.Slot, one *distribute.Copy) []key {
	c.copies.Put(slot, one)
	return c.concerned(slot, one.By)
}

// dropCopy takes a copy off the tables. The caller holds the lock.
func (c *Controller) dropCopy(slot propagate.Slot) []key {
	by := c.copies.At(slot).By
	c.copies.Delete(slot)
	return c.concerned(slot, by)
}

// concerned are the keys of everybody who wants slot, and of who wrote there. The caller holds the lock.
func (c *Controller) concerned(slot propagate.Slot, by string) []key {
	keys := []key{{by, slot.Namespace}}
	for name := range c.named[distribute.FamilyOf(slot)] {
		if name != by {
			keys = append(keys, key{name, slot.Namespace})
		}
	}
	return keys
}

// answered takes the answer to a write of our own into the tables, so that the next plan knows of it before the watch
// brings it.
func (c *Controller) answered(slot propagate.Slot, meta *metav1.PartialObjectMetadata) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, known := c.reader.Copy(slot, meta), c.copies.At(slot)
	one.Known = true
	k := c.kinds[slot.Kind]
	switch {
	case known != nil && known.UID == one.UID && view.Newer(known.ResourceVersion, one.ResourceVersion):
		known.Drifted = known.Drifted || known.Digest != one.Digest // somebody wrote after us, and the watch has told
		c.copies.Put(slot, known)
		return
	case known == nil && k != nil && view.Newer(k.seen, one.ResourceVersion):
		return // the watch has been there already, and has seen it go
	}
	c.copies.Put(slot, one)
	for name := range c.named[distribute.FamilyOf(slot)] {
		if r := c.runs[name]; r != nil {
			delete(r.obstacles, slot.Namespace)
		}
	}
}

// target gathers what is known of one namespace. The caller holds the lock.
func (c *Controller) target(r *run, f *forest.Snapshot, namespace string) distribute.Target {
	return distribute.Target{
		Namespace: namespace, Choice: r.Targets.Choose(f, namespace, c.settings.Protected),
		Copy: c.copies.At(r.Template.Slot(namespace)), Obstacle: r.obstacles[namespace],
	}
}

// planFor says what to do in one namespace. The caller holds the lock.
func (c *Controller) planFor(r *run, f *forest.Snapshot, namespace string) distribute.Action {
	if r.Problem != "" {
		return distribute.Action{}
	}
	return r.Plan(c.target(r, f, namespace), r.gate)
}
