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

// above makes sure, before a copy goes because its source stands nowhere above it, that this is so. A leader whose watch of Namespaces is
// behind would otherwise delete what its predecessor has written since. A copy that is older than what the watch has brought needs no
// look, which is so after every move that the watch tells of.
type above struct {
	index interface {
		Snapshot() *forest.Snapshot
		SeenVersion() string
		Observe(metav1.Object)
	}
	tables *tables
	writer interface {
		Metadata(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*metav1.PartialObjectMetadata, error)
	}
	looks   *lru.Cache // by namespace: the last look at its way up
	reading singleflight.Group
}

// look is what a live look at the way up from a namespace has shown.
type look struct {
	// way are the namespaces with their versions.
	way string
	// newest is the resourceVersion of the youngest copy in the namespace that was known before the look.
	newest string
}

// behindRetry is after which time a copy is looked at again whose removal the forest is too old for, if the forest doesn't change before.
const behindRetry = time.Second

// mostLooks bounds what is remembered: moved namespaces whose copies have not all been deleted yet.
const mostLooks = 1000

func newAbove(index *view.View, t *tables, w *copying.Writer) *above {
	return &above{index: index, tables: t, writer: w, looks: lru.New(mostLooks)}
}

// confirm returns errBehind unless no way leads from the namespace called from to slot, now that the copy of that version stands there.
// It reads the namespaces on the way up once for all copies in a namespace. What it finds newer than the forest goes into the forest.
func (a *above) confirm(ctx context.Context, slot propagate.Slot, from, version string) error {
	seen := a.index.SeenVersion()
	s := a.index.Snapshot()
	sources, ok := s.Sources(slot.Namespace)
	if !ok || sources.Has(from) || view.Newer(seen, version) {
		return nil
	}
	names := append([]string{slot.Namespace}, sources.Names...)
	way := describeWay(s, names)
	if a.covers(slot.Namespace, way, version) {
		return nil
	}
	_, err, _ := a.reading.Do(slot.Namespace+" "+way, func() (any, error) {
		now := look{way: way, newest: a.tables.newestIn(slot.Namespace)}
		err := a.compare(ctx, s, names)
		if err == nil {
			a.looks.Add(slot.Namespace, now)
		}
		return nil, err
	})
	if err == nil && !a.covers(slot.Namespace, way, version) {
		return errBehind // the copy has come or gone since, or the look was that of another copy
	}
	return err
}

// covers says whether the last look has shown this way up when the copy of that version stood there already.
func (a *above) covers(namespace, way, version string) bool {
	last, looked := a.looks.Get(namespace)
	return looked && last.(look).way == way && !view.Newer(version, last.(look).newest)
}

// compare returns errBehind where the API server has other versions of these namespaces than the forest, which gets them.
func (a *above) compare(ctx context.Context, s *forest.Snapshot, names []string) error {
	var result error
	for _, name := range names {
		live, err := a.writer.Metadata(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", name)
		reads.WithLabelValues("", "Namespace", "namespace").Inc()
		switch known := s.Namespace(name); {
		case apierrors.IsNotFound(err):
			result = errBehind // the watch will bring its end
		case err != nil:
			return err
		case string(live.UID) != known.UID || live.ResourceVersion != known.ResourceVersion:
			result = errBehind
			a.index.Observe(live)
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
