package copyengine

import (
	"fmt"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// repairs restore copies that other clients have changed.
type repairs struct {
	*core
	events *events
	// found holds how the drift of a copy was found, until the copy is repaired. It has no entry for drift that a watch
	// has shown.
	found map[copies.Slot]DriftSource
	known *copies.Repairs
}

// recordDrift records how the drift of a copy was found.
func (r *repairs) recordDrift(slot copies.Slot, by DriftSource) { r.found[slot] = by }

// dropDrift is called when a copy is gone.
func (r *repairs) dropDrift(slot copies.Slot) { delete(r.found, slot) }

// holdsBack reports whether a repair must wait because somebody changes the copy in a loop. The slot is queued for
// later then.
func (r *repairs) holdsBack(slot copies.Slot, action copies.Action, over *copies.Copy) bool {
	if action.Verb != copies.Update || !copies.IsRepair(over, action) {
		return false
	}
	wait := r.known.Wait(slot, r.now, r.settings.Timing.LoopWindow)
	if wait > 0 {
		r.queueAfter(slotKey(slot), wait)
	}
	return wait > 0
}

// recordRepair announces a repair of drift, and also the loop if this repair is the first that shows one (see Repairs).
func (r *repairs) recordRepair(slot copies.Slot, uid string) {
	found, recorded := r.found[slot]
	if delete(r.found, slot); !recorded {
		found = FoundByWatch
	}
	r.emitOutput(CopyRepaired{Kind: slot.Kind, Found: found})
	r.events.announceObject(slot, uid, false, v1alpha1.ReasonDriftRepaired,
		"another client changed this copy, and the operator restored it: change the source instead")
	if window := r.settings.Timing.LoopWindow; r.known.Note(slot, r.now, window) {
		r.events.announceObject(slot, uid, true, v1alpha1.ReasonDriftLoop, fmt.Sprintf(
			"another client keeps changing this copy: from now on the operator restores it only once in %s. Change the source, or find the client "+
				"in managedFields and stop it", window))
	}
}

func (r *repairs) takeDrift(d DriftFound) {
	known := r.findUnchanged(d.Slot, d.UID, d.ResourceVersion)
	if known == nil {
		return
	}
	known.Drifted = true
	r.world.PutCopy(d.Slot, known)
	r.recordDrift(d.Slot, FoundByScrub)
	r.queueKeys(slotKey(d.Slot))
}

func (r *repairs) findUnchanged(slot copies.Slot, uid, resourceVersion string) *copies.Copy {
	known := r.world.Copies.At(slot)
	if known == nil || known.UID != uid || known.ResourceVersion != resourceVersion || !known.Ours || known.Hash.Mode != v1alpha1.ModeUpdate {
		return nil
	}
	if r.world.Sources.At(slot.At(known.From)) == nil || r.world.Plan(slot).Verb != copies.Nothing {
		return nil
	}
	return known
}
