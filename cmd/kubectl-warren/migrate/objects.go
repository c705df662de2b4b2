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

// planCopies finds the source of each copy of the peer's, as Warren's own planner sees it, and adds the steps that make it one of ours in
// mode create. In the end its source is put back into its own mode, whereupon the operator writes the copy as it writes all others.
func (p *planner) planCopies() {
	objects := p.objectsBySlot()
	maps.Copy(objects, p.unmade)
	world := p.worldAfter(objects)
	copied, numbers := map[copies.Slot]bool{}, map[string]int{}
	for _, slot := range sortedSlots(p.Copies) {
		object := objects[slot]
		if object == nil {
			continue // of a kind that isn't configured
		}
		action := world.Plan(slot)
		if action.Verb != copies.Create {
			p.draft.miss("copy "+slot.String(), "nothing in Warren's trees asks for it: it stays as an object of its own namespace, to be kept or deleted")
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
		p.draft.relabel(Copies, 0, object, labels,
			map[string]string{v1alpha1.AnnotationSourceHash: mark.String()})
	}
	p.newCopies = p.findNewCopies(world, objects)
	for _, n := range p.newCopies {
		numbers[p.after.RootOf(n.Namespaces[0])] += len(n.Namespaces)
	}
	p.planLimits(numbers)
	p.planSources(objects, copied)
}

// planSources adds the steps that label the sources: whether and where they are copied. Sources with copies to be taken over are in
// mode create until the last step. In the last step Roles come before RoleBindings, which may name them.
func (p *planner) planSources(objects map[copies.Slot]*metav1.PartialObjectMetadata, copied map[copies.Slot]bool) {
	modes := p.kindModes()
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
			p.makeSource(slot, object)
		}
		final := p.finalMode(slot, modes)
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
		if (copied[slot] || made) && final != v1alpha1.ModeNone && !p.Peer.Record.isFinished() {
			before[v1alpha1.LabelPropagate] = v1alpha1.ModeCreate
		} else if final == v1alpha1.ModeNone {
			before[v1alpha1.LabelPropagate] = final
		}
		p.draft.relabel(Sources, 0, object, before, selector)
		after := object.DeepCopy()
		after.Labels = relabelled(after.Labels, before)
		p.draft.relabel(Finish, wave, after, map[string]string{v1alpha1.LabelPropagate: final}, nil)
	}
}

// finalMode is what the label propagate of an object says in the end; "" takes it off.
func (e *Estate) finalMode(slot copies.Slot, modes map[schema.GroupKind]copies.KindMode) string {
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

func (c Cluster) kindModes() map[schema.GroupKind]copies.KindMode {
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
			objects[kind.slot(object)] = object
		}
	}
	return objects
}

// worldAfter returns the world for Warren's planner after the migration: the sources as they will be, without the peer's copies.
func (p *planner) worldAfter(objects map[copies.Slot]*metav1.PartialObjectMetadata) *copies.World {
	world := copies.NewWorld(p.after)
	modes := p.kindModes()
	for kind, mode := range modes {
		world.SetKind(kind, mode, true)
	}
	for slot, object := range objects {
		if _, copied := p.Copies[slot]; copied {
			continue
		}
		then := object.DeepCopy()
		if said, says := p.Sources[slot]; says {
			then.Labels = relabelled(then.Labels, map[string]string{v1alpha1.LabelPropagate: p.finalMode(slot, modes)})
			then.Annotations = relabelled(then.Annotations, map[string]string{v1alpha1.AnnotationSelect: said.Select})
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

// planFinish plans the last phase. Its first step records that the migration can't be undone any more.
func (p *planner) planFinish() {
	if record := p.Peer.Record; !record.isFinished() {
		p.record(Finish, func(r *Record) { r.Finished = true })
	}
	p.planOwned()
}

func sortedSlots[V any](slots map[copies.Slot]V) []copies.Slot {
	return slices.SortedFunc(maps.Keys(slots), func(a, b copies.Slot) int { return strings.Compare(key(a), key(b)) })
}

func key(slot copies.Slot) string {
	return strings.Join([]string{slot.Kind.String(), slot.Namespace, slot.Name}, "/")
}
