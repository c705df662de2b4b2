package copies

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/lru"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/forest"
)

// removalChecks confirm by live reads that the namespace of a copy's source is not above the copy, before the copy is
// deleted for this reason. The watch of Namespaces may be behind: with such an old forest, a new leader would delete
// copies that its predecessor has written since. A copy of one of Kubernetes' own kinds that is older than the newest
// Namespace that the watch has shown needs no read. After the watch has shown a move, this is true of all such copies
// from before the move.
type removalChecks struct {
	view  namespaceView
	api   metadataReader
	read  func(func(*copyengine.State))
	done  *lru.Cache // by namespace: the last check of the namespaces above it
	share share
}

// namespaceView is what the checks need of a view.View.
type namespaceView interface {
	Snapshot() *forest.Snapshot
	SeenVersion() string
	Observe(metav1.Object)
}

// metadataReader is what the checks need of a copying.API.
type metadataReader interface {
	Metadata(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*metav1.PartialObjectMetadata, error)
}

// removalCheck is what a live read of a namespace and all namespaces above it has shown.
type removalCheck struct {
	// path names these namespaces by their UIDs and resourceVersions; see describePath.
	path string
	// newest is the highest resourceVersion of a copy in the namespace that was known before the read.
	newest string
}

// mostChecks bounds removalChecks.done, in namespaces. Only namespaces that have moved and still have copies to delete
// need their check again.
const mostChecks = 1000

func newRemovalChecks(v namespaceView, api metadataReader, read func(func(*copyengine.State))) *removalChecks {
	return &removalChecks{view: v, api: api, read: read, done: lru.New(mostChecks), share: newShare()}
}

// checkRemoval returns nil if the copy at slot, of this resourceVersion, may be deleted because the namespace called
// from, which has the copy's source, is not above the copy. It also returns nil to leave the decision to a new plan:
// if, by the view and by the State, from is above the copy, or the copy's namespace is halted, protected or gone. It
// returns ErrBehind if the forest may be too old. One read of the namespaces above serves all copies in a namespace. A
// Namespace that is newer than in the forest is entered in the view.
func (c *removalChecks) checkRemoval(ctx context.Context, slot copies.Slot, from, version string) error {
	// Before the snapshot: a version that is seen later says nothing about an older forest.
	seen := c.view.SeenVersion()
	f := c.view.Snapshot()
	switch stays := keepsCopy(f, from, slot.Namespace); {
	case stays && !keepsCopy(c.knownForest(), from, slot.Namespace):
		return copies.ErrBehind // the view has a newer forest, which the State does not know yet
	case stays || isServedWithNamespaces(slot.Kind) && forest.IsNewer(seen, version):
		return nil
	}
	above, _ := f.Sources(slot.Namespace)
	names := append([]string{slot.Namespace}, above.Names...)
	path := describePath(f, names)
	if c.coversNamespace(slot.Namespace, path, version) {
		return nil
	}
	_, err := c.share(slot.Namespace+" "+path, func() (any, error) {
		now := removalCheck{path: path}
		// Before the namespaces are read: a copy that appears later may follow from a later move.
		c.read(func(s *copyengine.State) {
			s.Read(func(w *copies.World) { now.newest = w.NewestIn(slot.Namespace) })
		})
		err := c.compareNamespaces(ctx, f, names)
		if err == nil {
			c.done.Add(slot.Namespace, now)
		}
		return nil, err
	})
	if err == nil && !c.coversNamespace(slot.Namespace, path, version) {
		return copies.ErrBehind // the read began before this copy was known, or the copy has gone since
	}
	return err
}

func (c *removalChecks) knownForest() (f *forest.Snapshot) {
	c.read(func(s *copyengine.State) { f = s.Forest() })
	return f
}

// keepsCopy reports whether the forest f gives no reason to delete a copy in namespace of an object in the namespace
// called from: from is above it, or the operator deletes nothing there, because namespace is halted, protected or gone.
func keepsCopy(f *forest.Snapshot, from, namespace string) bool {
	above, ok := f.Sources(namespace)
	return !ok || above.Has(from)
}

// isServedWithNamespaces reports whether the API server itself stores the objects of a kind, beside Namespaces, so that
// the resourceVersions of both can be compared. Another server may store those of any group that Kubernetes itself does
// not have: an APIService names it.
func isServedWithNamespaces(kind schema.GroupKind) bool {
	return scheme.Scheme.IsGroupRegistered(kind.Group)
}

// coversNamespace reports whether the last check of namespace has confirmed this path, and began after the State knew
// the copy of this resourceVersion.
func (c *removalChecks) coversNamespace(namespace, path, version string) bool {
	last, checked := c.done.Get(namespace)
	return checked && last.(removalCheck).path == path && !forest.IsNewer(version, last.(removalCheck).newest)
}

// compareNamespaces reads the Namespaces called names, and returns ErrBehind if one is missing or has another version
// than in the forest f. The version that was read is entered in the view.
func (c *removalChecks) compareNamespaces(ctx context.Context, f *forest.Snapshot, names []string) error {
	var result error
	// The loop goes on after ErrBehind, so that one check brings all newer Namespaces into the view.
	for _, name := range names {
		live, err := c.api.Metadata(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), "", name)
		countRead(copies.Slot{Kind: schema.GroupKind{Kind: "Namespace"}}, "namespace")
		switch known := f.Namespace(name); {
		case apierrors.IsNotFound(err):
			result = copies.ErrBehind // the watch will show the deletion of the Namespace
		case err != nil:
			return err
		case string(live.UID) != known.UID || live.ResourceVersion != known.ResourceVersion:
			result = copies.ErrBehind
			c.view.Observe(live)
		}
	}
	return result
}

func describePath(f *forest.Snapshot, names []string) string {
	path := make([]string, 0, len(names))
	for _, name := range names {
		n := f.Namespace(name)
		path = append(path, n.UID+"@"+n.ResourceVersion)
	}
	return strings.Join(path, " ")
}
