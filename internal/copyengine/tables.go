package copyengine

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/mirror"
)

// table is what watches and answers have shown of one kind. The objects are in the World, which packs them; the mirror decides what of
// that which is shown counts.
type table struct {
	kind    schema.GroupKind
	sources *mirror.Table[shownSource, copies.Source]
	copies  *mirror.Table[shownCopy, copies.Copy]
}

// shownSource is an object as a watch shows it, and what makes it a source.
type shownSource struct {
	*metav1.PartialObjectMetadata
	source *copies.Source
}

// shownCopy is an object as a watch shows it, or as the answer to a write of the operator's own has it: then with what is kept of it.
type shownCopy struct {
	*metav1.PartialObjectMetadata
	written *copies.Copy
}

// ofKind returns the table of a kind.
func (o *objects) ofKind(kind schema.GroupKind) *table {
	t := o.tables[kind]
	if t == nil {
		t = &table{kind: kind}
		t.sources = mirror.NewOver(sourceStore{o.world, kind}, func(s shownSource) copies.Source {
			o.completeSource(copies.SlotOf(kind, mirror.PlaceOf(s)), s.source)
			return *s.source
		})
		t.copies = mirror.NewOver(copyStore{o.world, kind}, func(s shownCopy) copies.Copy {
			if s.written != nil {
				return *s.written
			}
			return *o.copyOf(copies.SlotOf(kind, mirror.PlaceOf(s)), s.PartialObjectMetadata)
		})
		o.tables[kind] = t
	}
	return t
}

// copyOf returns what is kept of a copy that a watch shows. A copy that this process has not written has no digest: its drift is found by
// Inspect.
func (o *objects) copyOf(slot copies.Slot, object *metav1.PartialObjectMetadata) *copies.Copy {
	now, known := o.settings.Rules.CopyOf(slot, object), o.world.Copies.At(slot)
	if known != nil && known.UID == now.UID && known.Digest != 0 {
		now.Digest = o.settings.Rules.Digest(object)
		now.Drifted = known.Drifted || now.Digest != known.Digest
	}
	return now
}

// endWatch takes in that a watch of a namespace, or Everywhere, has ended, and that another one goes on showing what it has shown.
func (t *table) endWatch(role Role, namespace string) {
	if role.showsSources() {
		t.sources.EndWatch(namespace)
	}
	if role.showsCopies() {
		t.copies.EndWatch(namespace)
	}
}

// beginWrite is called before a write, or a probe, of a slot is requested.
func (o *objects) beginWrite(slot copies.Slot) *mirror.Flight {
	o.watches.beginWrite(slot.Namespace)
	return o.ofKind(slot.Kind).copies.Begin(slot.NamespacedName())
}

// sourceStore holds the sources of a kind, in the World.
type sourceStore struct {
	world *copies.World
	kind  schema.GroupKind
}

func (s sourceStore) At(p mirror.Place) (*copies.Source, mirror.Mark) {
	if known := s.world.Sources.At(copies.SlotOf(s.kind, p)); known != nil {
		return known, markOf(known.UID, known.ResourceVersion)
	}
	return nil, mirror.Mark{}
}

func (s sourceStore) In(namespace string) iter.Seq2[mirror.Place, *copies.Source] {
	return inSlots(s.world.Sources.In(s.kind, namespace), s.At)
}

func (s sourceStore) Put(p mirror.Place, _ mirror.Mark, source copies.Source) {
	s.world.PutSource(copies.SlotOf(s.kind, p), &source)
}

func (s sourceStore) Drop(p mirror.Place) { s.world.DeleteSource(copies.SlotOf(s.kind, p)) }

// copyStore holds the copies of a kind, in the World.
type copyStore struct {
	world *copies.World
	kind  schema.GroupKind
}

func (s copyStore) At(p mirror.Place) (*copies.Copy, mirror.Mark) {
	if known := s.world.Copies.At(copies.SlotOf(s.kind, p)); known != nil {
		return known, markOf(known.UID, known.ResourceVersion)
	}
	return nil, mirror.Mark{}
}

func (s copyStore) In(namespace string) iter.Seq2[mirror.Place, *copies.Copy] {
	return inSlots(s.world.Copies.In(s.kind, namespace), s.At)
}

func (s copyStore) Put(p mirror.Place, _ mirror.Mark, one copies.Copy) {
	s.world.PutCopy(copies.SlotOf(s.kind, p), &one)
}

func (s copyStore) Drop(p mirror.Place) { s.world.DeleteCopy(copies.SlotOf(s.kind, p)) }

func markOf(uid, resourceVersion string) mirror.Mark {
	return mirror.Mark{UID: types.UID(uid), Version: resourceVersion}
}

func inSlots[V any](slots []copies.Slot, at func(mirror.Place) (*V, mirror.Mark)) iter.Seq2[mirror.Place, *V] {
	return func(yield func(mirror.Place, *V) bool) {
		for _, slot := range slots {
			if is, _ := at(slot.NamespacedName()); is != nil && !yield(slot.NamespacedName(), is) {
				return
			}
		}
	}
}
