package migrate

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// planExistingCopies finds, by Warren's own planner, the source of each copy of the peer's. It adds the steps that make
// the object a copy of Warren's in mode create. The last step sets the final mode of the source. Then the operator
// updates the copy as it updates all others.
func (p *planner) planExistingCopies() {
	objects := p.objectsBySlot()
	maps.Copy(objects, p.unmade)
	world := p.worldAfterMigration(objects)
	copied, numbers := map[copies.Slot]bool{}, map[string]int{}
	for _, slot := range sortedSlots(p.Copies) {
		object := objects[slot]
		if object == nil {
			continue // of a kind that isn't configured
		}
		action := world.Plan(slot)
		if action.Verb != copies.Create {
			p.draft.addDraftGap("copy "+slot.String(), "Warren's trees have no source for it: it stays as an object of its own namespace, and "+
				"you may keep or delete it")
			continue
		}
		copied[action.Source] = true
		numbers[p.after.RootOf(slot.Namespace)]++
		if hash := copies.ParseHash(object.Annotations[v1alpha1.AnnotationSourceHash]); hash.Place == action.Hash.Place {
			continue
		}
		mark := copies.Hash{Mode: v1alpha1.ModeCreate, Place: action.Hash.Place, Content: copies.Unwritten}
		labels := map[string]string{v1alpha1.LabelInheritedFrom: action.Source.Namespace}
		if mark := p.peer.copyLabel; mark.value != "" && object.Labels[mark.key] == mark.value {
			labels[mark.key] = ""
		}
		p.draft.addRelabelStep(Copies, 0, object, labels,
			map[string]string{v1alpha1.AnnotationSourceHash: mark.String()})
	}
	p.newCopies = p.findNewCopies(world, objects)
	for _, n := range p.newCopies {
		numbers[p.after.RootOf(n.Namespaces[0])] += len(n.Namespaces)
	}
	p.planTreeLimits(numbers)
	p.planSourceLabels(objects, copied)
}

// planSourceLabels adds the steps that label the sources: whether and where they are copied. Sources with copies to be
// taken over are in mode create until the last step. In the last step Roles come before RoleBindings, which may name
// them.
func (p *planner) planSourceLabels(objects map[copies.Slot]*metav1.PartialObjectMetadata, copied map[copies.Slot]bool) {
	modes := p.configuredKindModes()
	wanted := map[copies.Slot]bool{}
	for slot := range copied {
		wanted[slot] = true
	}
	for slot := range p.Sources {
		wanted[slot] = true
	}
	for _, slot := range sortedSlots(wanted) {
		object := objects[slot]
		if object == nil {
			continue
		}
		if p.unmade[slot] != nil {
			p.planSourceCreation(slot, object)
		}
		final := p.finalPropagateMode(slot, modes)
		selector := map[string]string{}
		if s := p.Sources[slot].Select; s != "" {
			selector[v1alpha1.AnnotationSelect] = s
		}
		wave := 1
		if slot.Kind.Kind == "RoleBinding" {
			wave = 2
		}
		before := map[string]string{}
		_, made := p.Made[slot]
		if (copied[slot] || made) && final != v1alpha1.ModeNone && !p.Peer.Record.isMigrationFinished() {
			before[v1alpha1.LabelPropagate] = v1alpha1.ModeCreate
		} else if final == v1alpha1.ModeNone {
			before[v1alpha1.LabelPropagate] = final
		}
		p.draft.addRelabelStep(Sources, 0, object, before, selector)
		after := object.DeepCopy()
		after.Labels = withLabelChanges(after.Labels, before)
		p.draft.addRelabelStep(Finish, wave, after, map[string]string{v1alpha1.LabelPropagate: final}, nil)
	}
}

// finalPropagateMode returns the value of label propagate that an object has after the last step; "" if it has no such
// label.
func (e *Estate) finalPropagateMode(slot copies.Slot, modes map[schema.GroupKind]copies.KindMode) string {
	mode := e.Sources[slot].Mode
	if mode == "" {
		mode = v1alpha1.ModeUpdate
	}
	kind := modes[slot.Kind]
	switch {
	case kind == copies.All && mode == v1alpha1.ModeUpdate:
		return ""
	case kind == copies.OptIn && mode == v1alpha1.ModeNone:
		return ""
	}
	return mode
}

func (c Cluster) configuredKindModes() map[schema.GroupKind]copies.KindMode {
	modes := map[schema.GroupKind]copies.KindMode{}
	for _, kind := range c.Kinds {
		modes[kind.GroupKind()] = kind.Mode
	}
	return modes
}

func (c Cluster) objectsBySlot() map[copies.Slot]*metav1.PartialObjectMetadata {
	objects := map[copies.Slot]*metav1.PartialObjectMetadata{}
	for _, kind := range c.Kinds {
		for _, object := range kind.Objects {
			objects[kind.slotOfObject(object)] = object
		}
	}
	return objects
}

// worldAfterMigration returns the World of Warren's planner after the migration: the sources as they will be, without
// the peer's copies.
func (p *planner) worldAfterMigration(objects map[copies.Slot]*metav1.PartialObjectMetadata) *copies.World {
	world := copies.NewWorld(p.after)
	modes := p.configuredKindModes()
	for kind, mode := range modes {
		world.SetKind(kind, mode, true)
	}
	for slot, object := range objects {
		if _, copied := p.Copies[slot]; copied {
			continue
		}
		then := object.DeepCopy()
		if said, says := p.Sources[slot]; says {
			then.Labels = withLabelChanges(then.Labels,
				map[string]string{v1alpha1.LabelPropagate: p.finalPropagateMode(slot, modes)})
			then.Annotations = withLabelChanges(then.Annotations, map[string]string{v1alpha1.AnnotationSelect: said.Select})
		} else if modes[slot.Kind] == copies.All && then.Labels[v1alpha1.LabelPropagate] == v1alpha1.ModeCreate {
			delete(then.Labels, v1alpha1.LabelPropagate) // set by an earlier run
		}
		if source, ok := p.CopyRules.SourceOf(slot, then, modes[slot.Kind]); ok {
			source.Content = copies.Unwritten
			world.PutSource(slot, source)
		}
	}
	return world
}

// planFinishPhase adds the first step of the last phase, which records that the migration can't be undone any more, and
// the removal of ownerReferences.
func (p *planner) planFinishPhase() {
	if record := p.Peer.Record; !record.isMigrationFinished() {
		p.planRecordChange(Finish, func(r *Record) { r.Finished = true })
	}
	p.planOwnerRemovals()
}

func sortedSlots[V any](slots map[copies.Slot]V) []copies.Slot {
	return slices.SortedFunc(maps.Keys(slots),
		func(a, b copies.Slot) int { return strings.Compare(a.ID(), b.ID()) })
}
