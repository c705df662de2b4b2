package distribute

import (
	"maps"
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// The scrub reads every locked copy in full, once in a configured interval, to find changes that metadata do not show.

// FindScrubParts returns what a pass of the scrub reads: the kinds with locked copies, which are the copies that only the operator may
// change.
func (s *State) FindScrubParts() (all []copies.ScrubPart) {
	for gk, k := range s.kinds {
		isLocked := func(r *run) bool {
			return r.Problem == "" && r.Drift == v1alpha1.DriftRevert && r.Template.Kind.GroupKind() == gk
		}
		if k.state == copies.KindActive && slices.ContainsFunc(slices.Collect(maps.Values(s.runs)), isLocked) {
			all = append(all, copies.ScrubPart{Kind: k.GroupVersionKind, Resource: k.resource, Namespace: copies.Everywhere})
		}
	}
	return all
}

// FindUnchanged returns the copy in slot, and its distribution. It returns nil for both unless driftPolicy is Revert, and the copy still
// has this UID and resourceVersion, has the template's content, and is not known to have drifted.
func (s *State) FindUnchanged(slot copies.Slot, uid, resourceVersion string) (*Distribution, *Copy) {
	known := s.copies.atUID(slot, uid)
	if known == nil || known.ResourceVersion != resourceVersion || known.Drifted {
		return nil, nil
	}
	r := s.runs[known.By]
	if r == nil || r.Problem != "" || r.Drift != v1alpha1.DriftRevert || r.Template.Slot(slot.Namespace) != slot ||
		known.Content != r.Template.Content {
		return nil, nil
	}
	return r.Distribution, known
}

func (d DriftFound) applyTo(s *State) {
	of, known := s.FindUnchanged(d.Slot, d.UID, d.ResourceVersion)
	if known == nil {
		return
	}
	known.Known, known.Drifted = true, true
	s.copies.Put(d.Slot, known)
	s.queue(Key{of.Name, d.Slot.Namespace})
}
