package propagation

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// errBehind says that the forest, as the watch has brought it, is older than what stands in the cluster.
var errBehind = errors.New("the watch of Namespaces is behind")

// above confirms by live reads that the source's namespace of a copy is not above the copy, before the copy is deleted for this reason. The
// watch of Namespaces may be behind, and by such an old forest a new leader would delete what its predecessor has written since. A copy that
// is older than the newest Namespace that the watch has brought needs no read; after a move that the watch has brought, this is true of every
// copy.
type above struct {
	view interface {
		Snapshot() *forest.Snapshot
		SeenVersion() string
		Observe(metav1.Object)
	}
	facts  facts
	writer interface {
		Metadata(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*metav1.PartialObjectMetadata, error)
	}
	looks   *lru.Cache // by namespace: the last live look at the namespaces above it
	reading singleflight.Group
}

// look is what a live read of a namespace and all namespaces above it has shown.
type look struct {
	// way names these namespaces by their UIDs and resourceVersions; see describeWay.
	way string
	// newest is the highest resourceVersion of a copy in the namespace that was known before the read.
	newest string
}

// behindRetry is the pause before a deletion for which the forest is too old is planned again, if the forest doesn't change before.
const behindRetry = time.Second

// mostLooks bounds above.looks, in namespaces: those that have moved and whose copies have not all been deleted yet.
const mostLooks = 1000

func newAbove(v *view.View, f facts, w *copying.Writer) *above {
	return &above{view: v, facts: f, writer: w, looks: lru.New(mostLooks)}
}

// confirm returns nil if the copy at slot, of this resourceVersion, may be deleted because the namespace called from, which has its source,
// is not above it, or if both the view and the tables say that from is above it, so that a plan made from now on knows of that. It returns
// errBehind if the forest is too old to say so. One read of the namespaces above serves all copies in a namespace. A Namespace that is newer
// than in the forest is entered in the view.
func (a *above) confirm(ctx context.Context, slot propagate.Slot, from, version string) error {
	seen := a.view.SeenVersion()
	s := a.view.Snapshot()
	sources, ok := s.Sources(slot.Namespace)
	switch {
	case ok && sources.Has(from) && !isAbove(a.facts.forest(), from, slot.Namespace):
		return errBehind // another worker's read has brought a forest that the plans don't know yet
	case !ok || sources.Has(from) || view.Newer(seen, version):
		return nil
	}
	names := append([]string{slot.Namespace}, sources.Names...)
	way := describeWay(s, names)
	if a.covers(slot.Namespace, way, version) {
		return nil
	}
	_, err, _ := a.reading.Do(slot.Namespace+" "+way, func() (any, error) {
		now := look{way: way, newest: a.facts.newestIn(slot.Namespace)}
		err := a.compare(ctx, s, names)
		if err == nil {
			a.looks.Add(slot.Namespace, now)
		}
		return nil, err
	})
	if err == nil && !a.covers(slot.Namespace, way, version) {
		return errBehind // the read began before this copy was known, or the copy has gone since
	}
	return err
}

// isAbove says whether objects of the namespace called from reach namespace, by the forest f.
func isAbove(f *forest.Snapshot, from, namespace string) bool {
	sources, ok := f.Sources(namespace)
	return ok && sources.Has(from)
}

// covers says whether the last look at namespace has confirmed this way, and began when the copy of this resourceVersion was known already.
func (a *above) covers(namespace, way, version string) bool {
	last, looked := a.looks.Get(namespace)
	return looked && last.(look).way == way && !view.Newer(version, last.(look).newest)
}

// compare reads the Namespaces called names, and returns errBehind if one has another version than in the forest s. The version that was read
// is entered in the view.
func (a *above) compare(ctx context.Context, s *forest.Snapshot, names []string) error {
	var result error
	for _, name := range names {
		live, err := a.writer.Metadata(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", name)
		reads.WithLabelValues("", "Namespace", "namespace").Inc()
		switch known := s.Namespace(name); {
		case apierrors.IsNotFound(err):
			result = errBehind // the watch will bring the deletion of the Namespace
		case err != nil:
			return err
		case string(live.UID) != known.UID || live.ResourceVersion != known.ResourceVersion:
			result = errBehind
			a.view.Observe(live)
		}
	}
	return result
}

func describeWay(s *forest.Snapshot, names []string) string {
	way := make([]string, 0, len(names))
	for _, name := range names {
		n := s.Namespace(name)
		way = append(way, n.UID+"@"+n.ResourceVersion)
	}
	return strings.Join(way, " ")
}
