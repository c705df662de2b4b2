package access

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/grants"
)

// recent remembers the operator's own writes, so that a second pass over a tenant doesn't repeat what the watch has not
// brought yet. A deletion is remembered for the time in field lasts. A creation or update is remembered until the watch
// of its kind has brought this version or a later one. It is forgotten after lasts, too, but not while that watch is
// behind, as after an outage. Otherwise a plan on older objects would not find the binding to revoke: it would grant
// first, and revoke only after a refused POST.
//
// EnableReadYourWritesConsistency of controller-runtime (v0.25) does not serve here. It makes a read wait until the cache has the write:
// while a watch is behind, nothing would be revoked. A list waits for all writes of its kind, so tenants would wait for each other.
// A mirror.Table does not serve as long as the objects are read from the cache: it would hold each object a second time.
type recent struct {
	lasts time.Duration
	// readTo returns the resourceVersion up to which the watch of a kind has read; "" where that is not known.
	readTo func(kind string) string

	mu      sync.Mutex
	writes  map[grants.Key]write
	highest map[string]string // kind → highest resourceVersion that its watch has brought
}

type write struct {
	object grants.Object // nil after a deletion
	uid    types.UID
	at     time.Time
}

func newRecent(lasts time.Duration, readTo func(kind string) string) *recent {
	return &recent{lasts: lasts, readTo: readTo, writes: map[grants.Key]write{}, highest: map[string]string{}}
}

// recordSeen records that the watch has brought object.
func (r *recent) recordSeen(object client.Object) {
	key := grants.KeyOf(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	if highest, ok := r.highest[key.Kind]; !ok || forest.IsNewer(object.GetResourceVersion(), highest) {
		r.highest[key.Kind] = object.GetResourceVersion()
	}
}

// recordWritten remembers the answer to a write.
func (r *recent) recordWritten(object grants.Object) {
	r.recordWrite(grants.KeyOf(object), write{object: object.DeepCopyObject().(grants.Object), uid: object.GetUID()})
}

// recordDeleted remembers that object is gone.
func (r *recent) recordDeleted(object grants.Object) {
	r.recordWrite(grants.KeyOf(object), write{uid: object.GetUID()})
}

func (r *recent) recordWrite(key grants.Key, w write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.at = time.Now()
	r.writes[key] = w
	for other, o := range r.writes {
		if r.isOver(other, o) {
			delete(r.writes, other)
		}
	}
}

// isOver reports whether a write needs no remembering any more: the cache holds its result, or recent has waited long
// enough for that.
func (r *recent) isOver(key grants.Key, w write) bool {
	if w.object == nil {
		return time.Since(w.at) > r.lasts
	}
	version := w.object.GetResourceVersion()
	if highest, ok := r.highest[key.Kind]; ok && !forest.IsNewer(version, highest) {
		return true
	}
	return time.Since(w.at) > r.lasts && !forest.IsNewer(version, r.readTo(key.Kind))
}

// latestOf returns the newer of cached, which may be nil, and what was last written. It returns nil if the object was
// deleted.
func (r *recent) latestOf(key grants.Key, cached grants.Object) grants.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.writes[key]
	switch {
	case !ok || r.isOver(key, w):
		return cached
	// The cache still has what was deleted. Under another UID it has a new object. If the cache shows that the object is
	// being deleted, a finalizer keeps it that somebody added just before the deletion.
	case w.object == nil && cached != nil && cached.GetUID() == w.uid && cached.GetDeletionTimestamp() == nil:
		return nil
	case w.object == nil:
		return cached
	case cached != nil && forest.IsNewer(cached.GetResourceVersion(), w.object.GetResourceVersion()):
		return cached
	}
	return w.object.DeepCopyObject().(grants.Object)
}
