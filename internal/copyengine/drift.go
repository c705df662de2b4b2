package copyengine

import (
	"fmt"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// waitsInLoop reports whether a repair must wait because somebody changes the copy in a loop. The slot is queued for later then.
func (s *State) waitsInLoop(slot copies.Slot, action copies.Action, over *copies.Copy) bool {
	if action.Verb != copies.Update || !copies.IsRepair(over, action) {
		return false
	}
	wait := s.repairs.Wait(slot, s.now, s.settings.Timing.LoopWindow)
	if wait > 0 {
		s.queueAfter(slotKey(slot), wait)
	}
	return wait > 0
}

// recordRepair announces a repair of drift, and also the loop if this repair is the first that shows one (see Repairs).
func (s *State) recordRepair(slot copies.Slot, uid string) {
	found, recorded := s.drift[slot]
	if delete(s.drift, slot); !recorded {
		found = FoundByWatch
	}
	s.emitOutput(CopyRepaired{Kind: slot.Kind, Found: found})
	s.announceTrouble(slot, uid, false, v1alpha1.ReasonDriftRepaired,
		"another client changed this copy, and the operator restored it: change the source instead")
	if window := s.settings.Timing.LoopWindow; s.repairs.Note(slot, s.now, window) {
		s.announceTrouble(slot, uid, true, v1alpha1.ReasonDriftLoop, fmt.Sprintf(
			"another client keeps changing this copy: from now on the operator restores it only once in %s. Change the source, or find the client "+
				"in managedFields and stop it", window))
	}
}

func (d DriftFound) applyTo(s *State) {
	known := s.FindUnchanged(d.Slot, d.UID, d.ResourceVersion)
	if known == nil {
		return
	}
	known.Drifted = true
	s.world.PutCopy(d.Slot, known)
	s.drift[d.Slot] = FoundByScrub
	s.queueKeys(slotKey(d.Slot))
}

// FindUnchanged returns the copy at slot if all of this is true, else nil: it is ours and in mode update, it still has this UID and
// resourceVersion, its source is known, and the plan sees nothing to do there.
func (s *State) FindUnchanged(slot copies.Slot, uid, resourceVersion string) *copies.Copy {
	known := s.world.Copies.At(slot)
	if known == nil || known.UID != uid || known.ResourceVersion != resourceVersion || !known.Ours || known.Hash.Mode != v1alpha1.ModeUpdate {
		return nil
	}
	if s.world.Sources.At(slot.At(known.From)) == nil || s.world.Plan(slot).Verb != copies.Nothing {
		return nil
	}
	return known
}
