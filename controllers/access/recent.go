package access

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/controllers/index"
	"github.com/warren-tenancy/warren/internal/access"
)

// recent remembers own writes until the watch has brought them, so that a tenant that is looked at again at once isn't
// written again. It never waits: a memory that no watch confirms ends by itself, and costs at worst one refused write.
type recent struct {
	lasts time.Duration

	mu      sync.Mutex
	writes  map[access.Key]write
	highest map[string]string // kind → highest resourceVersion that its watch has brought
}

type write struct {
	object access.Object // nil after a deletion
	uid    types.UID
	at     time.Time
}

func newRecent(lasts time.Duration) *recent {
	return &recent{lasts: lasts, writes: map[access.Key]write{}, highest: map[string]string{}}
}

// observe notes that the watch has brought object.
func (r *recent) observe(object client.Object) {
	key := access.KeyOf(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	if highest, ok := r.highest[key.Kind]; !ok || index.Newer(object.GetResourceVersion(), highest) {
		r.highest[key.Kind] = object.GetResourceVersion()
	}
}

// wrote remembers the answer to a write.
func (r *recent) wrote(object access.Object) {
	r.remember(access.KeyOf(object), write{object: object.DeepCopyObject().(access.Object), uid: object.GetUID()})
}

// deleted remembers that object is gone.
func (r *recent) deleted(object access.Object) {
	r.remember(access.KeyOf(object), write{uid: object.GetUID()})
}

func (r *recent) remember(key access.Key, w write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.at = time.Now()
	r.writes[key] = w
	for other, o := range r.writes {
		if r.over(other, o) {
			delete(r.writes, other)
		}
	}
}

// over says whether a write is in the cache by now, or has been waited for long enough.
func (r *recent) over(key access.Key, w write) bool {
	if time.Since(w.at) > r.lasts {
		return true
	}
	highest, ok := r.highest[key.Kind]
	return w.object != nil && ok && !index.Newer(w.object.GetResourceVersion(), highest)
}

// latest is the later of what the cache holds, which may be nil, and what was written.
func (r *recent) latest(key access.Key, cached access.Object) access.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.writes[key]
	switch {
	case !ok || r.over(key, w):
		return cached
	case w.object == nil && cached != nil && cached.GetUID() == w.uid:
		return nil
	case w.object == nil:
		return cached
	case cached != nil && index.Newer(cached.GetResourceVersion(), w.object.GetResourceVersion()):
		return cached
	}
	return w.object.DeepCopyObject().(access.Object)
}
