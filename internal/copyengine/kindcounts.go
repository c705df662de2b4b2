package copyengine

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// KindCounts are the numbers of one kind, for metrics.
type KindCounts struct {
	Kind                                          schema.GroupKind
	State                                         copies.KindState
	Sources, Copies, Conflicts, Rejected, Limited int
	// Unseen is the number of namespaces in which nothing of the kind is seen, by the state of the watch there.
	Unseen map[string]int
}

// CountKinds returns the numbers of each kind.
func (s *State) CountKinds() []KindCounts {
	held := s.world.Limits.CountHeld()
	troubled := map[schema.GroupKind]map[v1alpha1.Reason]int{}
	for _, here := range s.troubles.slots {
		for slot, known := range here {
			if known.silent {
				continue
			}
			if troubled[slot.Kind] == nil {
				troubled[slot.Kind] = map[v1alpha1.Reason]int{}
			}
			troubled[slot.Kind][known.reason]++
		}
	}
	all := make([]KindCounts, 0, len(s.kinds))
	for gk, k := range s.kinds {
		c := KindCounts{
			Kind: gk, State: k.state, Limited: held[gk.Group][gk.Kind], Unseen: s.countUnseen(k),
			Conflicts: troubled[gk][v1alpha1.ReasonConflict], Rejected: troubled[gk][v1alpha1.ReasonRejected],
		}
		c.Sources, c.Copies = s.world.Len(gk)
		all = append(all, c)
	}
	return all
}

// countUnseen counts the followed namespaces in which nothing of a narrow kind is seen, by the state of the watch there.
func (s *State) countUnseen(k *watchedKind) map[string]int {
	if !k.IsNarrow() {
		return nil
	}
	states := map[string]string{}
	for _, w := range k.watches {
		for namespace := range s.followed {
			if status := w.unseen(namespace); status.State != "" {
				states[namespace] = string(status.State)
			}
		}
	}
	counts := map[string]int{}
	for _, state := range states {
		counts[state]++
	}
	return counts
}
