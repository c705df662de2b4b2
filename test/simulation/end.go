package simulation

import (
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// mostSteps bounds the work after all faults have ended.
const mostSteps = 5_000

// end ends all faults, has one replica work until nothing is left to do, and checks the result: FLT-M9 to FLT-M11.
func (h *history) end() {
	h.faults, h.late = nil, nil
	clear(h.server.denied)
	clear(h.server.outages)
	h.record("— all faults end —")
	leader := h.keepOne()
	h.settle(leader)
	h.compare()
	h.quiet = true
	h.record("— everything is as it should be; once more —")
	h.planAgain(leader)
	// Suspended distributions are looked at only at a start. The start may write what it has found to their status.
	suspended := h.server.list(func(_ copies.Slot, o *object) bool { return o.distribution != nil && o.distribution.Spec.Suspend })
	// A limit in bytes counts only the sources that the operator has read. After a restart it does not read shadowed sources, so more copies
	// may fit. So with such a limit, the operator isn't restarted.
	if h.script.seed%4 == 0 && len(suspended) == 0 && h.script.setup.bytes == 0 {
		h.record("— the operator is restarted —")
		leader.die()
		h.planAgain(h.keepOne())
	}
}

// keepOne ends all processes but the leader, and returns that. If there is none, it starts one.
func (h *history) keepOne() *replica {
	var leader *replica
	for _, r := range h.replicas {
		if r.alive && r.leads {
			leader = r
		} else if r.alive {
			r.die()
		}
	}
	h.late = nil
	if leader == nil {
		leader = newReplica(h, "last")
		h.replicas = append(h.replicas, leader)
	}
	h.catchUp(leader)
	if !leader.leads {
		leader.becomeLeader()
	}
	return leader
}

// settle lets the operator work until no task waits and no timer is due within patience, which is simulated time. Timers that are due
// later may remain.
func (h *history) settle(r *replica) {
	end := h.server.now.Add(patience)
	for range mostSteps {
		free := r.free()
		switch {
		case h.catchUp(r):
		case len(r.workers) > 0:
			h.record(h.goOn(r.workers[0]))
		case len(free) > 0:
			r.begin(free[0])
		case h.server.control():
		default:
			r.applyCopies(copyengine.Ticked{Idle: true})
			if !h.passUntil(r, end) {
				return
			}
		}
	}
	h.fail("FLT-M9", "the work does not end: %d keys wait, %d timers", len(r.waiting), len(r.timers))
}

// passUntil lets time pass until the next timer, if that is due before end.
func (h *history) passUntil(r *replica, end time.Time) bool {
	at := end
	for _, due := range r.timers {
		if due.Before(at) {
			at = due
		}
	}
	if at.Equal(end) {
		return false
	}
	h.pass(max(0, at.Sub(h.server.now)))
	return true
}

// planAgain plans everything once more. Nothing may be written (FLT-M10).
func (h *history) planAgain(r *replica) {
	for name := range r.view.Snapshot().All() {
		r.keep([]queuing{{task: task{copies: copyengine.Key{Task: copyengine.LookAtNamespace, Slot: copies.Slot{Namespace: name}}}}})
	}
	for _, one := range h.server.list(isDistribution) {
		if !one.distribution.Spec.Suspend { // the operator looks at a suspended one only when something else asks for it
			r.keep([]queuing{{task: task{runs: distribute.Key{Distribution: one.meta.Name}}}})
		}
	}
	slices.SortFunc(r.waiting, task.compare)
	h.settle(r)
}

// compare compares the cluster with what its objects ask for: FLT-M11.
func (h *history) compare() {
	for _, namespace := range names {
		for _, gvk := range copiedKinds {
			for _, name := range []string{"s", "t", "own", "shared"} {
				if slot := slotOf(gvk, namespace, name); h.server.forest.Namespace(namespace) != nil {
					if what := h.judge(slot); what != "" {
						h.fail("FLT-M11", "%s %s", slot, what)
					}
				}
			}
		}
	}
	for _, one := range h.server.list(isDistribution) {
		h.judgeDistribution(one.distribution)
	}
}

// judge returns what is wrong with the object at a slot; "" if nothing is.
func (h *history) judge(slot copies.Slot) string {
	w, o := h.server.world, h.server.at(slot)
	wish, from := h.wanted(w, slot)
	above, _ := w.forest.Sources(slot.Namespace)
	var by string
	ours := false
	if o != nil {
		by, ours = o.from, o.from != ""
		if isRun(o) || o.meta.DeletionTimestamp != nil || !ours {
			return ""
		}
		isAsked := wish == copied && roleOf(w.at(from)) == "" && !h.script.setup.isLimited()
		if _, labelled := o.meta.Labels[v1alpha1.LabelInheritedFrom]; !labelled && !isAsked {
			return "" // no watch shows this copy: only a POST finds it, which a limit may hold back
		}
	}
	switch {
	case wish == asIs || ours && above.Frozen(by):
		return ""
	case wish == nothing && ours && o.mode() == v1alpha1.ModeUpdate:
		return "is left, and nobody wants it"
	case wish == nothing || h.isHeldBack(slot.Namespace):
		return ""
	}
	source := w.at(from)
	role := roleOf(source)
	switch {
	case role != "" && (modeOf(from, source) == v1alpha1.ModeCreate || !w.meansSameRole(slot, from, role)):
		if ours && o.mode() == v1alpha1.ModeUpdate {
			return "binds to another Role than its source"
		}
		return ""
	case o == nil && h.script.setup.isLimited(), modeOf(from, source) == v1alpha1.ModeCreate && o != nil:
		return ""
	case o == nil:
		return "is missing"
	case o.mode() == v1alpha1.ModeCreate && by != from.Namespace:
		return ""
	case h.mayHoldBack(slot, o, source):
		return ""
	case !w.holds(o, from) || o.mode() != modeOf(from, source):
		return fmt.Sprintf("is not what %s says: %v, not %v", from, o.rest, source.rest)
	}
	return ""
}

// mayHoldBack reports whether a limit in bytes may keep a copy from an update: the copy would become larger, or would become the copy of
// another source, which is held back. Copies of RBAC kinds are always updated.
func (h *history) mayHoldBack(slot copies.Slot, o, source *object) bool {
	// The operator knows the length that it has written, not that of an edit, which is a user's right in mode create.
	isLarger := o.edited || o.mode() == v1alpha1.ModeCreate || sizeOf(slot, source) > sizeOf(slot, o) || source.meta.Namespace != o.from
	return h.script.setup.bytes > 0 && slot.Kind.Group == "" && isLarger
}

// isHeldBack reports whether no new copies are written to a namespace, because a copy that must be deleted there is held by a finalizer.
func (h *history) isHeldBack(namespace string) bool {
	above, _ := h.server.forest.Sources(namespace)
	for it := h.server.objects.Iterator(); !it.Done(); {
		slot, o, _ := it.Next()
		isCopy := o.from != "" && !isRun(o) && o.mode() == v1alpha1.ModeUpdate
		if slot.Namespace == namespace && isCopy && !above.Has(o.from) && !above.Frozen(o.from) {
			return true
		}
	}
	return false
}

// severity orders the states of kinds. A replica is in the first of them that one of its watches is in.
var severity = []copies.KindState{copies.KindSyncing, copies.KindForbidden, copies.KindDegraded, copies.KindPending}

// stateOf returns what state a replica is in when an Input comes: whether it leads, and what its watches show.
func (r *replica) stateOf() string {
	role := "standby"
	if r.leads {
		role = "leader"
	}
	for _, state := range severity {
		for _, w := range r.watches {
			if w.sink.state != nil && (stateAfter[w.told] == state || w.told == "" && state == copies.KindSyncing) {
				return role + " " + string(state)
			}
		}
	}
	return role + " " + string(copies.KindActive)
}

var stateAfter = map[watchset.State]copies.KindState{
	watchset.Degraded: copies.KindDegraded, watchset.Forbidden: copies.KindForbidden, watchset.NotServed: copies.KindPending,
	watchset.Synced: copies.KindActive,
}
