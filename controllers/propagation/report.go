package propagation

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// Known says whether everything in namespace, below it and above it was looked at since this replica leads, or since the
// configuration changed. Before that, what is not in Troubles may be in trouble all the same.
func (e *Engine) Known(namespace string) bool { return e.troubles.isKnown(namespace) }

// Troubles returns what keeps copies in these namespaces from being what they should be, in alphabetical order. Copies that still stand, and
// for whose removal others wait, are among the troubles when nothing has moved in their namespace for Timing.Stuck.
func (e *Engine) Troubles(namespaces iter.Seq[string]) []propagate.Trouble {
	var all []propagate.Trouble
	for namespace := range namespaces {
		all = append(all, e.facts.heldAround(namespace)...)
		for slot, why := range e.troubles.invalidIn(namespace) {
			all = append(all, propagate.Trouble{Slot: slot, Reason: v1alpha1.ReasonInvalidSource, From: namespace, Text: why})
		}
		here := e.troubles.in(namespace)
		if e.removals.isReported(namespace) {
			for slot, c := range e.facts.leaving(namespace) {
				all = append(all, propagate.Trouble{Slot: slot, Reason: v1alpha1.ReasonWaitingForRemoval, From: c.From, Text: describeRemoval(c, here[slot])})
				delete(here, slot)
			}
		}
		for slot, t := range here {
			if t.reason != "" && !t.silent {
				all = append(all, propagate.Trouble{Slot: slot, Reason: t.reason, From: t.from, Text: t.text})
			}
		}
	}
	slices.SortFunc(all, propagate.Trouble.Compare)
	return all
}

// describeRemoval says why a copy still stands that others wait for.
func describeRemoval(c *propagate.Copy, t trouble) string {
	switch {
	case c.Kept != nil && len(c.Kept.Finalizers) > 0:
		return fmt.Sprintf("it must be removed before copies of other sources come, and its finalizer %s keeps it", c.Kept.Finalizers[0])
	case t.reason == v1alpha1.ReasonRejected:
		return "it must be removed before copies of other sources come, and the API server refuses to delete it: " + t.text
	}
	return "it must be removed before copies of other sources come"
}

// watchTroubles checks, every Timing.ScrubTick until ctx is done, whether the work that was there at the start is done, and whether a
// namespace has waited for removals for too long.
func (e *Engine) watchTroubles(ctx context.Context) {
	for ctx.Err() == nil {
		if e.Ready(nil) == nil && e.queue.IsIdle() {
			e.troubles.setKnown(e.removals.namespaces())
		}
		e.removals.reportStuck()
		select {
		case <-ctx.Done():
		case <-time.After(e.Timing.ScrubTick):
		}
	}
}
