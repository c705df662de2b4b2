package distribution

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
)

// obstacleWatch watches, for one distribution in conflict, the objects of its kind and name that are not its own. Nothing
// else holds unrelated objects.
type obstacleWatch struct {
	controller *Controller
	run        *run
	cancel     context.CancelFunc
	synced     bool
}

// choice selects what may stand in the way of a distribution. It also matches objects without the label.
func choice(d *distribute.Distribution) metav1.ListOptions {
	return metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", d.Template.Name).String(),
		LabelSelector: v1alpha1.LabelDistributedBy + "!=" + d.Name,
	}
}

// listObstacles finds, with one request, what stands in the way now.
func (c *Controller) listObstacles(ctx context.Context, d *distribute.Distribution, resource schema.GroupVersionResource) (map[string]*distribute.Obstacle, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timing.List)
	defer cancel()
	list, err := c.metadata.Resource(resource).List(ctx, choice(d))
	if err != nil {
		return nil, err
	}
	found := map[string]*distribute.Obstacle{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range list.Items {
		if o := c.readObstacle(d, &list.Items[i]); o != nil {
			found[list.Items[i].Namespace] = o
		}
	}
	return found, nil
}

// readObstacle takes an object that stands in the way; nil for a copy of another distribution, which the tables have. The
// caller holds the lock.
func (c *Controller) readObstacle(d *distribute.Distribution, meta *metav1.PartialObjectMetadata) *distribute.Obstacle {
	if _, labelled := meta.Labels[v1alpha1.LabelDistributedBy]; labelled {
		return nil
	}
	mode, opted := meta.Labels[v1alpha1.LabelPropagate]
	source := opted && mode != v1alpha1.ModeNone
	if !opted && c.settings.Covered(d.Template.Kind.GroupKind()) {
		source = c.Index.Snapshot().Place(meta.Namespace).InTree()
	}
	return distribute.ReadObstacle(meta, source)
}

// watchObstacles begins to watch what stands in the way. The caller holds the lock.
func (c *Controller) watchObstacles(r *run, resource schema.GroupVersionResource) {
	if r.watch != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.watch = &obstacleWatch{controller: c, run: r, cancel: cancel}
	go c.observe(ctx, resource, choice(r.Distribution), r.watch)
}

// stopWatch ends the watch of obstacles, if there is one. The caller holds the controller's lock.
func (r *run) stopWatch() {
	if r.watch != nil {
		r.watch.cancel()
		r.watch = nil
	}
}

func (w *obstacleWatch) replace(all []*metav1.PartialObjectMetadata) {
	c := w.controller
	c.mu.Lock()
	old := w.run.obstacles
	w.run.obstacles = map[string]*distribute.Obstacle{}
	for _, meta := range all {
		w.putObstacle(meta, old[meta.Namespace])
	}
	w.synced = true
	keys := []key{{distribution: w.run.Name}}
	for namespace := range old {
		if w.run.obstacles[namespace] == nil {
			keys = append(keys, key{w.run.Name, namespace})
		}
	}
	c.mu.Unlock()
	c.enqueue(keys...)
}

// putObstacle keeps what an earlier look at the same version has shown. The caller holds the lock.
func (w *obstacleWatch) putObstacle(meta *metav1.PartialObjectMetadata, known *distribute.Obstacle) {
	o := w.controller.readObstacle(w.run.Distribution, meta)
	switch {
	case o == nil:
		delete(w.run.obstacles, meta.Namespace)
	case known != nil && known.UID == o.UID && known.ResourceVersion == o.ResourceVersion:
		w.run.obstacles[meta.Namespace] = known
	default:
		w.run.obstacles[meta.Namespace] = o
	}
}

func (w *obstacleWatch) put(meta *metav1.PartialObjectMetadata) {
	w.controller.mu.Lock()
	w.putObstacle(meta, w.run.obstacles[meta.Namespace])
	w.controller.mu.Unlock()
	w.controller.enqueue(key{w.run.Name, meta.Namespace}, key{distribution: w.run.Name})
}

func (w *obstacleWatch) gone(meta *metav1.PartialObjectMetadata) {
	w.controller.mu.Lock()
	if o := w.run.obstacles[meta.Namespace]; o != nil && o.UID == string(meta.UID) {
		delete(w.run.obstacles, meta.Namespace)
	}
	w.controller.mu.Unlock()
	w.controller.enqueue(key{w.run.Name, meta.Namespace}, key{distribution: w.run.Name})
}

func (w *obstacleWatch) lost(error) {}
