package distribution

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
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
	set      *watchset.Set
	client   metadata.Interface
	queue    *queue
	limit    time.Duration // of the request that lists
}

// selectorsOf returns the selectors of a distribution's possible obstacles. Objects without the label match too.
func selectorsOf(d *distribute.Distribution) (ofLabels labels.Selector, ofFields fields.Selector) {
	notOurs, err := labels.NewRequirement(v1alpha1.LabelDistributedBy, selection.NotEquals, []string{d.Name})
	if err != nil {
		panic(err) // the name of a ResourceDistribution is that of a label's value: its CRD says so
	}
	return labels.NewSelector().Add(*notOurs), fields.OneTermEqualSelector("metadata.name", d.Template.Name)
}

// list returns a distribution's obstacles by namespace, by one request.
func (l *lookout) list(ctx context.Context, d *distribute.Distribution, resource schema.GroupVersionResource) (map[string]*distribute.Obstacle, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	ofLabels, ofFields := selectorsOf(d)
	list, err := l.client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: ofLabels.String(), FieldSelector: ofFields.String()})
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
	ofLabels, ofFields := selectorsOf(d)
	lease, err := l.set.Acquire(owner, watchset.Request{
		Resource: resource, LabelSelector: ofLabels, FieldSelector: ofFields,
		Sink: &obstacleSink{lookout: l, run: r, kind: d.Template.Kind.GroupKind(), watch: w},
	})
	if err != nil {
		return // the set has stopped, as the process does
	}
	context.AfterFunc(w.ctx, lease.Release)
}

// obstacleSink takes what the watch of one distribution's obstacles shows. It implements watchset.Sink.
type obstacleSink struct {
	lookout *lookout
	run     *run
	kind    schema.GroupKind
	watch   *obstacleWatch
}

// Replace implements watchset.Sink, and so do the next three.
func (s *obstacleSink) Replace(_, _ string, all []client.Object) {
	found := make(map[string]*distribute.Obstacle, len(all))
	for _, object := range metadataOf(all) {
		if o := s.lookout.read(s.kind, object); o != nil {
			found[object.Namespace] = o
		}
	}
	keys := []key{{distribution: s.run.name}}
	for _, namespace := range s.run.replaceObstacles(s.watch, found) {
		keys = append(keys, key{s.run.name, namespace})
	}
	s.lookout.queue.add(keys...)
}

func (s *obstacleSink) Put(object client.Object) {
	o := s.lookout.read(s.kind, object.(*metav1.PartialObjectMetadata))
	s.change(object, func(known *distribute.Obstacle) *distribute.Obstacle { return keepExamined(known, o) })
}

func (s *obstacleSink) Gone(object client.Object) {
	s.change(object, func(known *distribute.Obstacle) *distribute.Obstacle {
		if known != nil && known.UID == string(object.GetUID()) {
			return nil
		}
		return known
	})
}

// State implements watchset.Sink. While the watch does not work, the obstacles are as it has shown them last.
func (s *obstacleSink) State(string, watchset.Status) {}

func (s *obstacleSink) change(object client.Object, change func(known *distribute.Obstacle) *distribute.Obstacle) {
	s.run.changeObstacle(object.GetNamespace(), change)
	s.lookout.queue.add(key{s.run.name, object.GetNamespace()}, key{distribution: s.run.name})
}

// keepExamined returns known if it is the same version of the object as brought, because known may have been examined; else brought.
func keepExamined(known, brought *distribute.Obstacle) *distribute.Obstacle {
	if known != nil && brought != nil && known.UID == brought.UID && known.ResourceVersion == brought.ResourceVersion {
		return known
	}
	return brought
}

// forgetObstacle is the change that removes an obstacle.
func forgetObstacle(*distribute.Obstacle) *distribute.Obstacle { return nil }
