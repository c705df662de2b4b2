package distribution

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/view"
)

// obstacleWatch is the watch, for one distribution in conflict, on the objects of its kind and name that are not its own. No other
// watch of this package brings unrelated objects.
type obstacleWatch struct {
	ctx    context.Context //nolint:containedctx // ends with the conflict, whoever sees that end
	cancel context.CancelFunc
	synced bool // guarded by the lock of the run
}

func newObstacleWatch() *obstacleWatch {
	w := &obstacleWatch{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// lookout finds obstacles: others' objects in the slots of copies.
type lookout struct {
	settings *Settings
	view     *view.View
	watcher  *watcher
	queue    *queue
	limit    time.Duration // of the request that lists
}

// choice returns the selectors of a distribution's possible obstacles. Objects without the label match too.
func choice(d *distribute.Distribution) metav1.ListOptions {
	return metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", d.Template.Name).String(),
		LabelSelector: v1alpha1.LabelDistributedBy + "!=" + d.Name,
	}
}

// list returns a distribution's obstacles by namespace, by one request.
func (l *lookout) list(ctx context.Context, d *distribute.Distribution, resource schema.GroupVersionResource) (map[string]*distribute.Obstacle, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	list, err := l.watcher.client.Resource(resource).List(ctx, choice(d))
	if err != nil {
		return nil, err
	}
	found := map[string]*distribute.Obstacle{}
	for i := range list.Items {
		if o := l.read(d.Template.Kind.GroupKind(), &list.Items[i]); o != nil {
			found[list.Items[i].Namespace] = o
		}
	}
	return found, nil
}

// read returns an object as an obstacle; nil for a copy of any distribution, which the copyTable has.
func (l *lookout) read(gk schema.GroupKind, meta *metav1.PartialObjectMetadata) *distribute.Obstacle {
	if _, labelled := meta.Labels[v1alpha1.LabelDistributedBy]; labelled {
		return nil
	}
	mode, opted := meta.Labels[v1alpha1.LabelPropagate]
	source := opted && mode != v1alpha1.ModeNone
	if !opted && l.settings.Covered(gk) {
		source = l.view.Snapshot().Place(meta.Namespace).InTree()
	}
	return distribute.ReadObstacle(meta, source)
}

// begin starts the watch w on d's obstacles, until w is cancelled.
func (l *lookout) begin(r *run, d *distribute.Distribution, resource schema.GroupVersionResource, w *obstacleWatch) {
	to := &obstacleFeed{lookout: l, run: r, kind: d.Template.Kind.GroupKind(), watch: w}
	go l.watcher.listAndWatch(w.ctx, resource, choice(d), to)
}

// obstacleFeed is the sink of the watch on one distribution's obstacles.
type obstacleFeed struct {
	lookout *lookout
	run     *run
	kind    schema.GroupKind
	watch   *obstacleWatch
}

func (f *obstacleFeed) replace(all []*metav1.PartialObjectMetadata) {
	found := make(map[string]*distribute.Obstacle, len(all))
	for _, meta := range all {
		if o := f.lookout.read(f.kind, meta); o != nil {
			found[meta.Namespace] = o
		}
	}
	keys := []key{{distribution: f.run.name}}
	for _, namespace := range f.run.replaceObstacles(f.watch, found) {
		keys = append(keys, key{f.run.name, namespace})
	}
	f.lookout.queue.add(keys...)
}

func (f *obstacleFeed) put(meta *metav1.PartialObjectMetadata) {
	o := f.lookout.read(f.kind, meta)
	f.run.changeObstacle(meta.Namespace, func(known *distribute.Obstacle) *distribute.Obstacle { return keepExamined(known, o) })
	f.lookout.queue.add(key{f.run.name, meta.Namespace}, key{distribution: f.run.name})
}

func (f *obstacleFeed) gone(meta *metav1.PartialObjectMetadata) {
	f.run.changeObstacle(meta.Namespace, func(known *distribute.Obstacle) *distribute.Obstacle {
		if known != nil && known.UID == string(meta.UID) {
			return nil
		}
		return known
	})
	f.lookout.queue.add(key{f.run.name, meta.Namespace}, key{distribution: f.run.name})
}

func (f *obstacleFeed) lost(error) {}

// keepExamined returns known if it is the same version of the object as brought, because known may have been examined; else brought.
func keepExamined(known, brought *distribute.Obstacle) *distribute.Obstacle {
	if known != nil && brought != nil && known.UID == brought.UID && known.ResourceVersion == brought.ResourceVersion {
		return known
	}
	return brought
}

// forgetObstacle is the change that removes an obstacle.
func forgetObstacle(*distribute.Obstacle) *distribute.Obstacle { return nil }
