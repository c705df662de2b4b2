package simulation

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Failure is what is wrong in a history.
type Failure struct {
	// Invariant is the number in docs/behaviour/faults.md.
	Invariant, Text string
}

func (f *Failure) Error() string { return f.Invariant + ": " + f.Text }

// fail ends the history.
func (h *history) fail(invariant, format string, args ...any) {
	panic(&Failure{invariant, fmt.Sprintf(format, args...)})
}

// checkWrite checks a write of the operator that the API server is about to carry out. before is nil for a POST, and after is nil for a
// DELETE.
func (c client) checkWrite(slot copies.Slot, before, after *object) {
	decided := c.current.since
	if before != nil {
		c.checkStranger(slot, before, after, decided)
	}
	if before != nil && after == nil {
		if isRun(before) {
			c.checkRunDeletion(slot, before, decided)
		} else {
			c.checkDeletion(slot, before, decided)
		}
	}
	if after != nil {
		c.checkPlace(slot, after)
	}
	if before != nil && after != nil && isRun(before) && !isRun(after) {
		c.checkHandBack(slot, before, after)
	} else if after != nil && isRun(after) {
		c.checkRun(slot, before, after, decided)
	} else if after != nil {
		c.checkCopy(slot, after, decided)
	}
	if before == nil && !isRun(after) {
		c.checkLimit(slot, after)
	}
}

// everSince reports whether a world matches on which the operator may have based a decision. When it decided, it knew the first n changes
// for certain. The watch of Namespaces may be behind those of other kinds, or ahead, so the forest may be of another moment than the
// objects.
func (s *server) everSince(n int, match func(world) bool) bool { return s.everSinceBoth(n, n, match) }

// everSinceBoth is everSince for a decision at which the operator knew the first forestSince changes of the forest for certain.
func (s *server) everSinceBoth(n, forestSince int, match func(world) bool) bool {
	var forests []*forest.Snapshot
	for i := min(forestSince, len(s.log)); i <= len(s.log); i++ {
		if f := s.worldAt(i).forest; len(forests) == 0 || forests[len(forests)-1] != f {
			forests = append(forests, f)
		}
	}
	for i := min(n, len(s.log)); i <= len(s.log); i++ {
		for _, f := range forests {
			if match(world{s.worldAt(i).objects, f}) {
				return true
			}
		}
	}
	return false
}

// checkStranger: FLT-M2. No object of somebody else is deleted, and none is written unless a ResourceDistribution takes it over.
func (c client) checkStranger(slot copies.Slot, before, after *object, decided int) {
	if before.from != "" {
		return
	}
	if after == nil || !isRun(after) {
		c.fail("FLT-M2", "%s is somebody else's, and the operator changes it", slot)
	}
	taken := c.server.everSince(decided, func(w world) bool {
		one := w.at(distributionSlot(after.from))
		return one != nil && mayTake(one.distribution, before) != no
	})
	if !taken {
		c.fail("FLT-M2", "%s is somebody else's, and the operator changes it", slot)
	}
}

// checkDeletion: FLT-M3. A copy is not deleted if it was wanted ever since the last moment of which the operator knew everything for
// certain. The forest must be as new as the copy, because the operator reads the namespaces above live before a deletion.
func (c client) checkDeletion(slot copies.Slot, before *object, decided int) {
	from := before.from
	forestSince := decided
	for forestSince < len(c.server.log) && c.server.versionAt(forestSince) < before.written {
		forestSince++
	}
	unwanted := func(w world) bool {
		wish, source := c.wanted(w, slot)
		if wish != copied || source.Namespace != from {
			above, _ := w.forest.Sources(slot.Namespace)
			return wish != asIs || !above.Has(from)
		}
		o := w.at(source)
		role := roleOf(o)
		isUnkept := before.mode() == v1alpha1.ModeUpdate && modeOf(source, o) == v1alpha1.ModeCreate
		return role != "" && (isUnkept || !w.meansSameRole(slot, source, role)) || !reflect.DeepEqual(o.rest["roleRef"], before.rest["roleRef"])
	}
	// Which labels the namespace has is not read live.
	isDeselected := func(w world) bool {
		source := w.at(slot.At(from))
		return source != nil && !selects(source, w, slot.Namespace)
	}
	if !c.server.everSinceBoth(decided, forestSince, unwanted) && !c.server.everSinceBoth(decided, decided, isDeselected) {
		c.fail("FLT-M3", "%s is deleted although its source %s exists and wants it", slot, slot.At(from))
	}
}

// checkPlace: FLT-M4. The place in the hash of a copy is that of no other slot or source.
func (c client) checkPlace(slot copies.Slot, after *object) {
	parts := strings.Split(after.meta.Annotations[v1alpha1.AnnotationSourceHash], ":")
	if after.from == "" {
		return
	}
	if len(parts) != 3 || len(parts[1]) != 16 || len(parts[2]) != 32 {
		c.fail("FLT-M4", "%s gets the hash %q", slot, parts)
	}
	now := placed{slot, after.from}
	if known, there := c.places[parts[1]]; there && known != now {
		c.fail("FLT-M4", "%s has the place of %s from %s", slot, known.slot, known.from)
	}
	c.places[parts[1]] = now
}

// placed is what the place in a hash stands for.
type placed struct {
	slot copies.Slot
	from string
}

// checkHandBack: FLT-M4. An object is handed back only if a ResourceDistribution took it over. Everything beside its metadata stays.
func (c client) checkHandBack(slot copies.Slot, before, after *object) {
	if before.meta.Annotations[v1alpha1.AnnotationAdopted] == "" || !reflect.DeepEqual(before.rest, after.rest) {
		c.fail("FLT-M4", "%s is handed back, but was not taken over, or has another content now", slot)
	}
}

// checkCopy: FLT-M4. A copy is what the world asks for, or has asked for since the last moment of which the operator knew everything for
// certain.
func (c client) checkCopy(slot copies.Slot, after *object, decided int) {
	from := slot.At(after.meta.Labels[v1alpha1.LabelInheritedFrom])
	if !c.server.everSince(decided, func(w world) bool {
		wish, source := c.wanted(w, slot)
		return wish == copied && source == from
	}) {
		c.fail("FLT-M4", "%s is copied to %s, where it is not wanted", from, slot)
	}
	if !c.server.everSince(decided, func(w world) bool { return w.holds(after, from) }) {
		c.fail("FLT-M4", "%s gets a content that %s never had", slot, from)
	}
	if len(after.meta.OwnerReferences) > 0 {
		c.fail("FLT-M4", "%s gets owners: the garbage collector would look for them in its namespace", slot)
	}
	role := roleOf(after)
	if role != "" && !c.server.everSince(decided, func(w world) bool { return w.meansSameRole(slot, from, role) }) {
		c.fail("FLT-M4", "%s binds to another Role than %s", slot, from)
	}
}

// countWrite: FLT-M10. When everything was done, nothing is written any more.
func (c client) countWrite(slot copies.Slot) {
	if c.quiet {
		c.fail("FLT-M10", "everything was done, and the operator writes %s", slot)
	}
}

// checkLimit: FLT-M7. A new copy never makes the copies in a tree exceed the tree's limits. Copies of a template's sources and those of a
// ResourceDistribution don't count. Once the history is unsteady, nothing is checked: the operator may not know all copies.
func (c client) checkLimit(slot copies.Slot, after *object) {
	limits, root := c.script.setup, c.server.forest.RootOf(slot.Namespace)
	if !limits.isLimited() || c.isUnsteady || after.meta.Labels[v1alpha1.LabelInheritedFrom] == "tmpl" {
		return
	}
	count, size := 1, sizeOf(slot, after)
	for it := c.server.objects.Iterator(); !it.Done(); {
		at, o, _ := it.Next()
		if o.from != "" && !isRun(o) && c.server.forest.RootOf(at.Namespace) == root && !c.server.awaitsRemoval(at, o) &&
			o.meta.Labels[v1alpha1.LabelInheritedFrom] != "tmpl" {
			count, size = count+1, size+sizeOf(at, o)
		}
	}
	if limits.limit > 0 && count > limits.limit {
		c.fail("FLT-M7", "%s is copy %d in the tree of %s, whose limit is %d", slot, count, root, limits.limit)
	}
	if limits.bytes > 0 && size > limits.bytes+count*sizeSlack {
		c.fail("FLT-M7", "with %s, the copies in the tree of %s have %d bytes, whose limit is %d", slot, root, size, limits.bytes)
	}
}

// awaitsRemoval reports whether the source of a copy in mode update has gone, or is being deleted. If that happened while the copy was
// being written, room was given to others before the answer.
func (w world) awaitsRemoval(slot copies.Slot, o *object) bool {
	source := w.at(slot.At(o.from))
	return o.mode() == v1alpha1.ModeUpdate && (source == nil || source.meta.DeletionTimestamp != nil)
}

// sizeSlack is how many bytes per copy checkLimit tolerates above limits.bytes, because two things add bytes in spite of the limit: users
// edit copies, and the operator updates copies of RBAC kinds even if they grow.
const sizeSlack = 20

// sizeOf returns the size of a copy, counted as the operator counts its source.
func sizeOf(slot copies.Slot, o *object) int {
	body, err := copies.Render(slot, o.whole(), copies.Rules{})
	if err != nil {
		panic(err) // what the model stores is an object
	}
	return body.Size
}

// checkDecision checks a request for a write when the State has decided on it: FLT-M5.
func (r *replica) checkDecision(request copyengine.Request) {
	w, isWrite := request.(copyengine.WriteCopy)
	if !isWrite || w.Action.Verb != copies.Create && w.Action.Verb != copies.Update {
		return
	}
	impatient := r.impatient
	r.impatient = false
	for _, other := range r.workers {
		if o, is := other.what.(copyengine.WriteCopy); is && o.Action.Verb == copies.Delete && o.Slot.Namespace == w.Slot.Namespace {
			r.fail("FLT-M5", "%s is written before the DELETE of %s is answered", w.Slot, o.Slot)
		}
	}
	r.copies.Read(func(known *copies.World) {
		above, _ := known.Forest.Sources(w.Slot.Namespace)
		for _, slot := range known.SlotsIn(w.Slot.Namespace) {
			c := known.Copies.At(slot)
			if c != nil && c.Ours && c.Hash.Mode == v1alpha1.ModeUpdate && !above.Has(c.From) && !above.Frozen(c.From) {
				r.fail("FLT-M5", "%s is written before %s of %s is removed", w.Slot, slot, c.From)
			}
		}
		isFirst := w.Action.Verb == copies.Create && w.Slot.Kind == roleBindings.GroupKind() && !known.Copies.GiveRightsFrom(w.Slot.Namespace,
			w.Action.Source.Namespace)
		if isFirst && !impatient {
			r.checkRails(known, w.Slot, above.Names)
		}
	})
}

// checkRails: FLT-M6. Before the first rights in a namespace are granted by a copy, the rails are there.
func (r *replica) checkRails(known *copies.World, binding copies.Slot, above []string) {
	for _, gvk := range copiedKinds {
		if gvk == roleBindings || !known.Synced(gvk.GroupKind()) {
			continue
		}
		for _, from := range above {
			for _, source := range known.Sources.In(gvk.GroupKind(), from) {
				rail, s := source.At(binding.Namespace), known.Sources.At(source)
				isWanted := s.Mode == v1alpha1.ModeUpdate && s.Invalid == "" && s.Excluded == "" && !s.Terminating && s.Selector == nil
				if !isWanted || r.script.setup.isLimited() || known.Copies.At(rail) != nil || known.Sources.At(rail) != nil ||
					r.shadows(known, source, above) {
					continue
				}
				if !r.isInConflict(rail) {
					r.fail("FLT-M6", "%s gives rights before %s, whose plan is %+v", binding, rail, known.Plan(rail))
				}
			}
		}
	}
}

// shadows reports whether no copy of this source is wanted: a source of that name further up comes first or can't be judged, or the kind is
// in mode Remove.
func (r *replica) shadows(known *copies.World, source copies.Slot, above []string) bool {
	for _, name := range above {
		if name == source.Namespace {
			return r.isRemoved(source)
		}
		if s := known.Sources.At(source.At(name)); s != nil && (s.Mode != v1alpha1.ModeNone || s.Invalid != "") {
			return true
		}
	}
	return false
}

// isInConflict reports whether another object, or one that is being deleted, is at slot: on the server, or by the last answer to a write
// there. A copy of a ResourceDistribution is another object.
func (r *replica) isInConflict(slot copies.Slot) bool {
	o := r.server.at(slot)
	if o == nil || r.obstacles[slot] {
		return r.obstacles[slot]
	}
	return o.from == "" || isRun(o) || o.meta.DeletionTimestamp != nil
}

// recordObstacle keeps whether another object, or one that is being deleted, was where the operator wanted to write. No watch may show when
// that object goes. A failed write does not show whether the object is still there.
func (r *replica) recordObstacle(answer copyengine.Input) {
	switch w, is := answer.(copyengine.CopyWritten); {
	case is && (errors.Is(w.Err, copies.ErrObstacle) || errors.Is(w.Err, copies.ErrBeingDeleted)):
		r.obstacles[w.Slot] = true
	case is && w.Err == nil:
		delete(r.obstacles, w.Slot)
	}
}

// patience is how long the operator may wait at the end: for the longest back-off, or because somebody has changed a copy in a loop, which
// it then leaves as it is for a time.
const patience = 30 * time.Minute
