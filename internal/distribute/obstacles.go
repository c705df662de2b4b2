package distribute

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// obstacles are those of one ResourceDistribution, and how the operator sees them: by a watch while there are any.
// While that watch does not run, they are listed now and then.
type obstacles struct {
	*core
	kinds       *kinds
	byNamespace map[string]*Obstacle
	looked      bool            // they have been listed since this replica knows the distribution
	watch       *ObstacleWatch  // nil while there is no obstacle
	watching    bool            // the watch shows all of them
	shown       string          // the newest resourceVersion that the watch has shown; "" before its list
	unwatched   watchset.Status // why the watch shows nothing, as it has reported last; zero if it has reported no error
	lookAt      time.Time       // when obstacles that are not watched are listed again; zero if that was not planned yet
}

func newObstacles(c *core, k *kinds) *obstacles {
	return &obstacles{core: c, kinds: k, byNamespace: map[string]*Obstacle{}}
}

// findObstacle returns the obstacle in a namespace; nil if none is known. Whether a Covered object is a source of
// propagation is decided here rather than where the object was read, because its namespace can join or leave a tree
// while the object stays the same.
func (o *obstacles) findObstacle(namespace string) *Obstacle {
	known := o.byNamespace[namespace]
	if known == nil || !known.Covered || !o.forest.Place(namespace).InTree() {
		return known
	}
	return known.asSource(namespace)
}

// hasCovered reports whether the obstacle in a namespace is one of propagation's sources whenever that namespace is in
// a tree.
func (o *obstacles) hasCovered(namespace string) bool {
	known := o.byNamespace[namespace]
	return known != nil && known.Covered
}

// setObstacle replaces the obstacle in a namespace; drop removes it.
func (o *obstacles) setObstacle(namespace string, now *Obstacle) { o.byNamespace[namespace] = now }
func (o *obstacles) removeObstacle(namespace string)             { delete(o.byNamespace, namespace) }

// dropGone forgets the obstacle in a namespace if it has this UID, because it is gone.
func (o *obstacles) dropGone(namespace, uid string) {
	if known := o.byNamespace[namespace]; known != nil && known.UID == uid {
		o.removeObstacle(namespace)
	}
}

// dropOlder forgets the obstacle in a namespace unless it is newer than this resourceVersion, at which a copy was there.
func (o *obstacles) dropOlder(namespace, resourceVersion string) {
	if known := o.byNamespace[namespace]; known != nil && !forest.IsNewer(known.ResourceVersion, resourceVersion) {
		o.removeObstacle(namespace)
	}
}

// changeObstacle replaces the obstacle in a namespace by what change returns, if it still has this resourceVersion.
func (o *obstacles) changeObstacle(namespace, resourceVersion string, change func(Obstacle) Obstacle) {
	known := o.byNamespace[namespace]
	if known != nil && known.ResourceVersion == resourceVersion {
		changed := change(*known)
		o.byNamespace[namespace] = &changed
	}
}

// takeSpec makes all obstacles unexamined, because they were compared with the old spec. Obstacles of a spec with a
// problem do not matter: they are forgotten, and listed anew when the problem is solved.
func (o *obstacles) takeSpec(d *Distribution) {
	if d.Problem != "" {
		o.stopWatch()
		o.byNamespace, o.looked = map[string]*Obstacle{}, false
	}
	for namespace, known := range o.byNamespace {
		o.byNamespace[namespace] = known.unexamined()
	}
}

// takeList replaces all known obstacles, and returns the keys of d's targets that have none any more.
func (o *obstacles) takeList(d *Distribution, gk schema.GroupKind, all []*metav1.PartialObjectMetadata) (gone []Key) {
	found := make(map[string]*Obstacle, len(all))
	for _, meta := range all {
		if one := readObstacle(o.options.Covered, gk, meta); one != nil {
			found[meta.Namespace] = one
		}
	}
	for namespace, known := range o.byNamespace {
		if found[namespace] == nil {
			gone = append(gone, Key{d.Name, namespace})
		} else {
			found[namespace] = keepExamined(known, found[namespace])
		}
	}
	o.byNamespace = found
	return gone
}

// takeWatched takes in a list of the watch, which shows all obstacles from then on. It returns the keys that takeList returns.
func (o *obstacles) takeWatched(d *Distribution, l ObstaclesListed) (gone []Key) {
	o.watching, o.shown = true, l.ResourceVersion
	return o.takeList(d, l.Watch.Kind, l.Objects)
}

// isPast reports whether the watch has shown already that an object, which an answer has found, is no longer there.
func (o *obstacles) isPast(namespace string, found *Obstacle) bool {
	known := o.byNamespace[namespace]
	return (known == nil || known.UID != found.UID) && forest.IsNewer(o.shown, found.ResourceVersion)
}

// noteShown notes how new what the watch has shown is.
func (o *obstacles) noteShown(meta *metav1.PartialObjectMetadata) {
	if forest.IsNewer(meta.ResourceVersion, o.shown) {
		o.shown = meta.ResourceVersion
	}
}

// takeSeen takes in what the watch has shown in one namespace.
func (o *obstacles) takeSeen(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) {
	o.noteShown(meta)
	if now := readObstacle(o.options.Covered, gk, meta); now == nil {
		o.removeObstacle(meta.Namespace)
	} else {
		o.setObstacle(meta.Namespace, keepExamined(o.byNamespace[meta.Namespace], now))
	}
}

// takeGone takes in that an object was deleted, or is a copy now.
func (o *obstacles) takeGone(meta *metav1.PartialObjectMetadata) {
	o.noteShown(meta)
	o.dropGone(meta.Namespace, string(meta.UID))
}

// followKind keeps the watch while there are obstacles, and plans the next list while the watch does not run.
func (o *obstacles) followKind(d *Distribution, hasObstacle bool) {
	if hasObstacle {
		o.keepWatch(d)
		o.queueLook(d)
		return
	}
	o.stopWatch()
	o.byNamespace = map[string]*Obstacle{}
}

// keepWatch begins the watch, unless there is one.
func (o *obstacles) keepWatch(d *Distribution) {
	if o.watch == nil {
		w := o.watchOf(d)
		o.watch, o.unwatched, o.lookAt = &w, watchset.Status{}, time.Time{}
		o.emitOutput(FollowObstacles{})
	}
}

// currentWatch returns the watch that must exist now; nil if there is none.
func (o *obstacles) currentWatch() *ObstacleWatch { return o.watch }

// stopWatch ends the watch, if there is one. What it has shown counts no longer: it shows nothing that comes after it.
func (o *obstacles) stopWatch() {
	if o.watch != nil {
		o.watch, o.watching, o.shown = nil, false, ""
		o.emitOutput(FollowObstacles{})
	}
}

func (o *obstacles) watchOf(d *Distribution) ObstacleWatch {
	gk := d.Template.Kind.GroupKind()
	return ObstacleWatch{Distribution: d.Name, Kind: gk, Name: d.Template.Name, Resource: o.kinds.findKind(gk).resource}
}

// takeState takes in the state of the watch.
func (o *obstacles) takeState(now watchset.Status) {
	switch o.watching = now.State == watchset.Synced; {
	case o.watching:
		o.unwatched = watchset.Status{}
	case now.Err != nil: // a new try to list changes nothing before it has ended
		o.unwatched = now
	}
}

// describeUnwatched returns a clause that says why the watch shows nothing; "" if it shows all, or has just begun.
func (o *obstacles) describeUnwatched() string {
	if o.unwatched.Err == nil {
		return ""
	}
	return fmt.Sprintf("the operator lists these objects every %s instead of watching them: %s", o.options.RetryMax,
		copies.DescribeStatus(o.unwatched))
}

// queueLook queues the next list of obstacles that no watch shows. Each review does: a review that comes earlier takes the place of the one
// that was queued before.
func (o *obstacles) queueLook(d *Distribution) {
	if o.watching {
		return
	}
	if !o.now.Before(o.lookAt) {
		o.lookAt = o.now.Add(o.options.RetryMax)
	}
	o.queueAfter(reviewKey(d.Name), o.lookAt.Sub(o.now))
}

// isLookDue reports whether obstacles that no watch shows must be listed again.
func (o *obstacles) isLookDue() bool {
	return o.watch != nil && !o.watching && !o.lookAt.IsZero() && !o.now.Before(o.lookAt)
}

// isShown reports whether the watch shows all obstacles.
func (o *obstacles) isShown() bool { return o.watch != nil && o.watching }

// mustLook reports whether obstacles must be listed now. missing reports that copies are missing. Then obstacles are
// listed after a start, and with again before each review.
func (o *obstacles) mustLook(missing, again bool) bool {
	// Not for a target that is added later: the answer to the POST of its copy shows an obstacle.
	return o.isLookDue() || missing && !o.isShown() && (again || !o.looked)
}

// endLook records that the obstacles were listed, or, with an error, that they could not be: that delays no more than
// one review of what is known.
func (o *obstacles) endLook(err error) {
	if err == nil {
		o.looked = true
	} else if o.isLookDue() {
		o.lookAt = o.now.Add(o.options.RetryMax)
	}
}
