// Package newest knows the newest versions of objects that this process has written, while a cache may still show older ones.
//
// A mirror.Table does not serve here: it would hold each object a second time, beside the cache. The option
// EnableReadYourWritesConsistency of controller-runtime (v0.25) does not serve either. It makes a read wait until the cache has the write,
// so a worker would stop while a watch is behind; a reconciler here returns, and the watch's event queues it again. The option does not
// know of a version that another client wrote (RecordChanged), and it is experimental.
package newest

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Known holds the newest known versions of objects of one kind. The zero value is ready for use.
type Known struct {
	mu    sync.Mutex // guards byKey
	byKey map[client.ObjectKey]version
}

type version struct {
	uid             types.UID
	resourceVersion string
}

// unseen is a resourceVersion higher than any real one.
const unseen = "99999999999999999999"

// Record records object, which is an answer of the API server, as the newest version.
func (k *Known) Record(object client.Object) { k.set(object, object.GetResourceVersion()) }

// RecordChanged records that the API server has deleted object, or has a version of it that this process has not read yet.
func (k *Known) RecordChanged(object client.Object) { k.set(object, unseen) }

func (k *Known) set(object client.Object, resourceVersion string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey == nil {
		k.byKey = map[client.ObjectKey]version{}
	}
	k.byKey[client.ObjectKeyFromObject(object)] = version{object.GetUID(), resourceVersion}
}

// IsOutdated reports whether a newer version of object is known. If not, the cache has caught up, and the known version is forgotten.
func (k *Known) IsOutdated(object client.Object) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := client.ObjectKeyFromObject(object)
	known := k.byKey[key]
	if known.uid == object.GetUID() && forest.IsNewer(known.resourceVersion, object.GetResourceVersion()) {
		return true
	}
	delete(k.byKey, key)
	return false
}

// Forget forgets the object of a key. Call it when the cache no longer has the object.
func (k *Known) Forget(key client.ObjectKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byKey, key)
}
