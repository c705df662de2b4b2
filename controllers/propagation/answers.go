package propagation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// What the answers to our own requests change in the contents. The methods of tables with the same names say what is noted.

func (c *contents) noteRead(slot propagate.Slot, read body) {
	s := c.world.Sources.At(slot)
	if s == nil || s.UID != read.uid || view.Newer(s.ResourceVersion, read.resourceVersion) {
		return
	}
	c.world.NoteContent(slot, s, read.Body)
	if s.Excluded == "" {
		s.Excluded = read.Excluded
	}
}

func (c *contents) noteAnswer(slot propagate.Slot, meta *metav1.PartialObjectMetadata) {
	now, known := c.rules.CopyOf(slot, meta), c.world.Copies.At(slot)
	now.Digest = c.rules.Digest(meta)
	switch {
	case known != nil && known.UID == now.UID && view.Newer(known.ResourceVersion, now.ResourceVersion):
		return // somebody wrote after us, and the watch has brought it
	case known == nil && view.Newer(c.lastSeen[c.streamOf(slot.Kind, slot.Namespace)], now.ResourceVersion):
		return // the watch is past this write, and has shown that the copy is gone
	}
	c.world.PutCopy(slot, now)
	c.world.NoteWritten(slot.At(now.From), now.Hash.Content)
}

func (c *contents) noteFound(slot propagate.Slot, meta *metav1.PartialObjectMetadata, unlabelled bool) {
	if c.world.Copies.At(slot) != nil {
		return
	}
	found := c.rules.CopyOf(slot, meta)
	found.Drifted = unlabelled
	c.world.PutCopy(slot, found)
}

func noteDeleted(w *propagate.World, slot propagate.Slot, uid string) {
	if known := w.Copies.At(slot); known != nil && known.UID == uid {
		known.Terminating = true
		w.PutCopy(slot, known)
	}
}

func (c *contents) noteAbsent(slot propagate.Slot, uid string) effects {
	if known := c.world.Copies.At(slot); known == nil || known.UID != uid {
		return effects{}
	}
	return c.dropCopy(slot)
}

func noteCompared(w *propagate.World, slot propagate.Slot, uid, resourceVersion string, source body) {
	if known := w.Copies.At(slot); known != nil && known.UID == uid && known.ResourceVersion == resourceVersion {
		known.Foreign, known.Meta = false, source.Meta
		w.PutCopy(slot, known)
		w.Copies.SetCompared(slot, source.Content)
	}
}

func markDrifted(w *propagate.World, slot propagate.Slot, uid, resourceVersion string) bool {
	known := unchanged(w, slot, uid, resourceVersion)
	if known == nil {
		return false
	}
	known.Drifted = true
	w.PutCopy(slot, known)
	return true
}

// unchanged returns the copy at slot if nothing has happened to it since this version and the plan sees nothing to do there; otherwise nil.
func unchanged(w *propagate.World, slot propagate.Slot, uid, resourceVersion string) *propagate.Copy {
	known := w.Copies.At(slot)
	if known == nil || known.UID != uid || known.ResourceVersion != resourceVersion || !known.Ours || known.Hash.Mode != v1alpha1.ModeUpdate {
		return nil
	}
	if w.Sources.At(slot.At(known.From)) == nil || w.Plan(slot).Verb != propagate.Nothing {
		return nil
	}
	return known
}
