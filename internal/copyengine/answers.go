package copyengine

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/mirror"
)

// readVersion is what a read of one version of a source has shown: its UID and resourceVersion, and fields of its Body.
type readVersion struct {
	uid, resourceVersion, content, excluded, role string
	meta                                          uint64
	size                                          int
}

func (o *objects) takeBody(r BodyRead) {
	b, known := r.Body, o.world.Sources.At(r.Source)
	if known == nil || r.Resource != o.watches.kindOf(r.Source.Kind).resource { // the source has gone, or must be read in another version
		return
	}
	o.bodies[r.Source] = readVersion{r.UID, r.ResourceVersion, b.Content, b.Excluded, b.Role, b.Meta, b.Size}
	// Content of another object, or of an older version, must not pass for that of the known one.
	if o.ofKind(r.Source.Kind).sources.Outdates(r.Source.NamespacedName(), markOf(r.UID, r.ResourceVersion)) {
		return
	}
	o.world.NoteContent(r.Source, known, b)
	o.queueLimits(r.Source.Namespace)
}

// completeSource adds to a source what its last read has shown, if that read was of the same version: so no version is
// read twice. Of an older version, the size counts until the source is read again: limits would else count none for it.
func (o *objects) completeSource(slot copies.Slot, source *copies.Source) {
	read, ok := o.bodies[slot]
	if !ok || read.uid != source.UID {
		return
	}
	if source.Size = read.size; read.resourceVersion != source.ResourceVersion {
		return
	}
	source.Content, source.Meta, source.Role = read.content, read.meta, read.role
	if source.Excluded == "" {
		source.Excluded = read.excluded
	}
}

// takeResult takes in what the requests for one slot have shown, so that the next plan knows it before a watch shows
// it.
func (o *objects) takeResult(slot copies.Slot, request WriteCopy, r Result, err error) {
	if apierrors.IsConflict(err) && o.unlabelled[slot] != "" {
		o.dropCopy(slot) // no watch shows the newer version, but the next POST finds it
	}
	// Before the repair is recorded, which tells how the drift was found.
	if r.FoundDrifted && o.world.Copies.At(slot) != nil {
		o.repairs.recordDrift(slot, FoundAtStart)
	}
	t := o.ofKind(slot.Kind).copies
	switch known := o.world.Copies.At(slot); {
	case r.Written != nil:
		o.takeWritten(slot, request, r.Written)
	case r.Found != nil:
		o.takeFound(slot, request, r)
	case r.Absent && o.unlabelled[slot] == "":
		if c, changed := t.Absent(request.flight); changed {
			o.noteCopy(slot, c)
		}
	case !t.Refused(request.flight), known == nil, request.Over == nil, known.UID != request.Over.UID:
	case r.Absent, r.Deleted && o.unlabelled[slot] == known.UID:
		o.dropCopy(slot) // where a finalizer still keeps the copy, the next POST finds it
	case r.Deleted: // the copy is dropped when a watch shows that it is gone
		known.Terminating = true
		o.world.PutCopy(slot, known)
	}
	if r.Repaired {
		o.repairs.recordRepair(slot, string(r.Written.UID))
	}
	if r.Compared != nil {
		o.takeCompared(slot, r)
	}
}

// takeFound takes in a copy of the operator's own that a read has found, unless a watch has shown since that the copy
// is gone.
func (o *objects) takeFound(slot copies.Slot, request WriteCopy, r Result) {
	o.queueKeys(slotKey(slot))
	if t := o.ofKind(slot.Kind).copies; !r.Unlabelled {
		t.Answered(request.flight, shownCopy{r.Found, nil})
		return
	} else if !t.Refused(request.flight) || t.At(slot.NamespacedName()) != nil {
		return
	}
	found := o.settings.Rules.CopyOf(slot, r.Found)
	found.Drifted, o.unlabelled[slot] = true, found.UID
	o.world.PutCopy(slot, found)
}

// takeWritten takes in the answer to a write of the operator's own, unless a watch has shown something newer.
func (o *objects) takeWritten(slot copies.Slot, request WriteCopy, meta *metav1.PartialObjectMetadata) {
	t, now, action := o.ofKind(slot.Kind).copies, o.settings.Rules.CopyOf(slot, meta), request.Action
	now.Digest = o.settings.Rules.Digest(meta)
	_, changed := t.Answered(request.flight, shownCopy{meta, now})
	switch known := t.Mark(slot.NamespacedName()); {
	case changed:
	case known == mirror.MarkOf(meta):
		o.world.PutCopy(slot, now) // the watch was faster, but does not know what was written
	case known == mirror.Mark{}:
		o.queueKeys(slotKey(slot)) // the copy has gone since, or lost its label: a POST finds out
		return
	default:
		return // somebody wrote after the operator, or the copy has gone since and another object has its name
	}
	delete(o.unlabelled, slot)
	if now.Hash.Content != action.Hash.Content { // the source was read again for this write
		action.Hash, action.Size = now.Hash, 0
	}
	o.world.NoteWritten(action)
}

// takeCompared records that this version of a copy was read whole, and that the present content of its source asks for
// no change of the copy, whichever managers own its fields.
func (o *objects) takeCompared(slot copies.Slot, r Result) {
	known := o.world.Copies.At(slot)
	if known != nil && o.ofKind(slot.Kind).copies.Mark(slot.NamespacedName()) == markOf(r.ComparedUID, r.ComparedVersion) {
		known.Foreign, known.Meta = false, r.Compared.Meta
		o.world.PutCopy(slot, known)
		o.world.Copies.SetCompared(slot, r.Compared.Content)
	}
}
