package propagation

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/warren-tenancy/warren/internal/propagate"
)

// bodiesLimit bounds the bodies of sources that are kept, in bytes. A source whose body had to go is read again when the body is needed.
const bodiesLimit = 16 << 20

// body is what a source's copies are written from.
type body struct {
	*propagate.Body
	uid, resourceVersion string
}

// bodies keeps the bodies of the sources that were used last, and for every source what its last read has shown.
type bodies struct {
	mu    sync.Mutex // guards all below
	lru   *simplelru.LRU[propagate.Slot, body]
	size  int // of the bodies that are kept, in bytes
	shown map[propagate.Slot]shownVersion
}

// shownVersion is what one version of a source has shown, without its content.
type shownVersion struct {
	uid, resourceVersion, content, excluded, role string
	meta                                          uint64
	size                                          int
}

func newBodies() *bodies {
	b := &bodies{shown: map[propagate.Slot]shownVersion{}}
	b.lru, _ = simplelru.NewLRU(1<<20, func(_ propagate.Slot, old body) { b.size -= old.Size }) // fails for a size of 0 only
	return b
}

// put keeps a body.
func (b *bodies) put(slot propagate.Slot, read body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lru.Remove(slot)
	b.lru.Add(slot, read)
	b.size += read.Size
	b.shown[slot] = shownVersion{read.uid, read.resourceVersion, read.Content, read.Excluded, read.Role, read.Meta, read.Size}
	for b.size > bodiesLimit && b.lru.Len() > 1 {
		b.lru.RemoveOldest()
	}
}

// get returns the body with this content, if it is kept.
func (b *bodies) get(slot propagate.Slot, content string) (body, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept, ok := b.lru.Get(slot)
	return kept, ok && kept.Content == content
}

// fit completes s with what the last read of its source has shown, if that read was of the same version: so no version is read twice.
func (b *bodies) fit(slot propagate.Slot, s *propagate.Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.shown[slot]
	if !ok || v.uid != s.UID || v.resourceVersion != s.ResourceVersion {
		return
	}
	s.Content, s.Meta, s.Size, s.Role = v.content, v.meta, v.size, v.role
	if s.Excluded == "" {
		s.Excluded = v.excluded
	}
}

func (b *bodies) drop(slot propagate.Slot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lru.Remove(slot)
	delete(b.shown, slot)
}
