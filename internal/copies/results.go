package copies

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// takeResult takes in what the requests for one slot have shown, so that the next plan knows it before a watch does.
func (s *State) takeResult(slot Slot, request WriteCopy, r Result, err error) {
	if apierrors.IsConflict(err) && s.unlabelled[slot] != "" {
		s.dropCopy(slot) // no watch shows the newer version, but the next POST finds it
	}
	if r.FoundDrifted {
		s.drift[slot] = FoundAtStart
	}
	if r.Written != nil {
		s.takeWritten(slot, r.Written)
	}
	if r.Repaired {
		s.recordRepair(slot, string(r.Written.UID))
	}
	if r.Compared != nil {
		s.takeCompared(slot, r)
	}
	if r.Found != nil && s.world.Copies.At(slot) == nil {
		s.takeFound(slot, r)
	}
	known := s.world.Copies.At(slot)
	if known == nil || request.Over == nil || known.UID != request.Over.UID {
		return
	}
	switch {
	case r.Absent:
		s.dropCopy(slot)
	case r.Deleted && s.unlabelled[slot] == known.UID:
		s.dropCopy(slot) // where a finalizer still keeps the copy, the next POST finds it
	case r.Deleted: // the copy is dropped when a watch shows that it is gone
		known.Terminating = true
		s.world.PutCopy(slot, known)
	}
}

// takeFound takes in a copy of the operator's own that a read has found, unless a watch has shown since that the copy is gone.
func (s *State) takeFound(slot Slot, r Result) {
	s.queue(slotKey(slot))
	if !r.Unlabelled && forest.IsNewer(s.newest[s.watchedPlaceOf(slot.Kind, slot.Namespace)], r.Found.ResourceVersion) {
		return
	}
	found := s.settings.Rules.CopyOf(slot, r.Found)
	if found.Drifted = r.Unlabelled; r.Unlabelled {
		s.unlabelled[slot] = found.UID
	}
	s.world.PutCopy(slot, found)
}

// takeWritten takes in the answer to a write of the operator's own, unless a watch has shown something newer.
func (s *State) takeWritten(slot Slot, meta *metav1.PartialObjectMetadata) {
	now, known := s.settings.Rules.CopyOf(slot, meta), s.world.Copies.At(slot)
	now.Digest = s.settings.Rules.Digest(meta)
	switch {
	case known != nil && known.UID == now.UID && forest.IsNewer(known.ResourceVersion, now.ResourceVersion):
		return // somebody wrote after the operator
	case known == nil && forest.IsNewer(s.newest[s.watchedPlaceOf(slot.Kind, slot.Namespace)], now.ResourceVersion):
		return // the copy has gone since
	}
	delete(s.unlabelled, slot)
	s.world.PutCopy(slot, now)
	s.world.NoteWritten(slot.At(now.From), now.Hash.Content)
}

// takeCompared records that this version of a copy was read whole, and that the present content of its source asks for no change of the
// copy, whichever managers own its fields.
func (s *State) takeCompared(slot Slot, r Result) {
	known := s.world.Copies.At(slot)
	if known != nil && known.UID == r.ComparedUID && known.ResourceVersion == r.ComparedVersion {
		known.Foreign, known.Meta = false, r.Compared.Meta
		s.world.PutCopy(slot, known)
		s.world.Copies.SetCompared(slot, r.Compared.Content)
	}
}

func (d DriftFound) apply(s *State) {
	known := s.FindUnchanged(d.Slot, d.UID, d.ResourceVersion)
	if known == nil {
		return
	}
	known.Drifted = true
	s.world.PutCopy(d.Slot, known)
	s.drift[d.Slot] = FoundByScrub
	s.queue(slotKey(d.Slot))
}

// FindUnchanged returns the copy at slot if nothing has happened to it since this version and the plan sees nothing to do there; else nil.
func (s *State) FindUnchanged(slot Slot, uid, resourceVersion string) *Copy {
	known := s.world.Copies.At(slot)
	if known == nil || known.UID != uid || known.ResourceVersion != resourceVersion || !known.Ours || known.Hash.Mode != v1alpha1.ModeUpdate {
		return nil
	}
	if s.world.Sources.At(slot.At(known.From)) == nil || s.world.Plan(slot).Verb != Nothing {
		return nil
	}
	return known
}

// IsRepair reports whether a PUT of this action over a copy puts back what somebody changed, rather than following the source.
func IsRepair(over *Copy, action Action) bool {
	return (over.Drifted || over.Marked) && over.Hash == action.Hash
}

// waitsInLoop reports whether a repair must wait because somebody changes the copy in a loop. The slot is queued for later then.
func (s *State) waitsInLoop(slot Slot, action Action, over *Copy) bool {
	if action.Verb != Update || !IsRepair(over, action) {
		return false
	}
	wait := s.repairs.Wait(slot, s.now, s.settings.Timing.LoopWindow)
	if wait > 0 {
		s.queueAfter(slotKey(slot), wait)
	}
	return wait > 0
}

// recordRepair announces a repair of drift, and the first one that makes a loop (see Repairs).
func (s *State) recordRepair(slot Slot, uid string) {
	found, recorded := s.drift[slot]
	if delete(s.drift, slot); !recorded {
		found = FoundByWatch
	}
	s.emit(CopyRepaired{Kind: slot.Kind, Found: found})
	s.announce(slot, uid, false, v1alpha1.ReasonDriftRepaired, "somebody changed this copy, and the operator put back what its source says: change the source instead")
	if window := s.settings.Timing.LoopWindow; s.repairs.Note(slot, s.now, window) {
		s.announce(slot, uid, true, v1alpha1.ReasonDriftLoop, fmt.Sprintf(
			"somebody changes this copy again and again; from now on it is put back once in %s: change the source, or stop who writes here", window))
	}
}
