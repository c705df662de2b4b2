package migrate

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// The phases of undoing, in their order.
const (
	Leave   Phase = "leave"   // namespaces leave Warren's trees, the deepest first
	Owners  Phase = "owners"  // the SubNamespaces, HierarchyConfigurations, sources and LNamespaces that the migration made go
	Release Phase = "release" // copies and sources lose Warren's keys
	Wake    Phase = "wake"    // the other operator gets its webhooks and replicas back
)

// NewUndo plans what takes the cluster back to where the other operator left it. Without a record nothing was begun, or all is undone.
func NewUndo(estate *Estate, c Cluster) (Plan, error) {
	switch record := c.Peer.Record; {
	case record == nil:
		return Plan{}, nil
	case record.Finished:
		return Plan{}, fmt.Errorf("the last step has been taken, by %s: the copies follow Warren's sources, and nothing can be undone", c.Peer.RecordAt)
	}
	p := newPlanner(estate, c)
	p.undoNamespaces()
	p.undoHierarchy()
	p.undoTenants()
	p.undoObjects()
	p.undoRest()
	return p.result(), nil
}

// undoNamespaces takes off the labels that placed the namespaces, but for those that they had before, from the leaves upwards: what has
// children can't leave.
func (p *planner) undoNamespaces() {
	deepest := len(p.joining)
	for _, name := range slices.Sorted(maps.Keys(p.joining)) {
		now := p.Namespaces[name]
		off := map[string]string{}
		for key, value := range p.joining[name].labels() {
			if now.Labels[key] == value {
				off[key] = p.had(objectOf(now), key)
			}
		}
		p.relabel(Leave, deepest-p.depth(name), now, off, nil)
	}
}

func (p *planner) undoHierarchy() {
	for _, name := range slices.Sorted(maps.Keys(p.joining)) {
		place := p.joining[name]
		if sub := p.Subs[place.Parent+"/"+name]; sub != nil && p.isMadeHere(ours("SubNamespace", place.Parent, name), sub) {
			p.remove(0, ours("SubNamespace", sub.Namespace, name), sub)
		}
		if hc := p.Hierarchies[name]; hc != nil && p.isMadeHere(ours("HierarchyConfiguration", name, hc.Name), hc) {
			p.remove(0, ours("HierarchyConfiguration", name, hc.Name), hc)
		} else if hc != nil {
			p.undoHierarchyOf(hc, place)
		}
	}
}

// isMadeHere says whether an object that stands was made by this migration, and not by one before it.
func (p *planner) isMadeHere(object Object, now metav1.Object) bool {
	return now.GetLabels()[v1alpha1.LabelCreatedBy] == madeHere && now.GetDeletionTimestamp() == nil && !p.wasThere(object)
}

// undoHierarchyOf takes what the migration wrote out of a HierarchyConfiguration that the operator had made.
func (p *planner) undoHierarchyOf(hc *v1alpha1.HierarchyConfiguration, place Place) {
	spec, object := map[string]any{}, ours("HierarchyConfiguration", hc.Namespace, hc.Name)
	if place.Cascading && hc.Spec.AllowCascadingDeletion && p.had(object, cascadingField) != v1alpha1.True {
		spec[cascadingField] = false
	}
	if left := withoutKeys(hc.Spec.PropagatedLabels, p.since(object, labelsField, place.Labels)); len(left) < len(hc.Spec.PropagatedLabels) {
		spec[labelsField] = left
	}
	if left := withoutKeys(hc.Spec.PropagatedAnnotations, p.since(object, annotationsField, place.Annotations)); len(left) < len(hc.Spec.PropagatedAnnotations) {
		spec[annotationsField] = left
	}
	if len(spec) > 0 {
		p.patchHierarchy(Owners, hc, spec)
	}
}

func withoutKeys(have []v1alpha1.MetadataKey, taken []string) []v1alpha1.MetadataKey {
	return slices.DeleteFunc(slices.Clone(have), func(key v1alpha1.MetadataKey) bool { return slices.Contains(taken, string(key)) })
}

// remove adds the step that deletes an object that the migration made.
func (p *planner) remove(wave int, object Object, now metav1.Object) {
	p.steps = append(p.steps, Step{Phase: Owners, wave: wave, Verb: Delete, Object: object, uid: string(now.GetUID())})
}

// undoObjects takes Warren's keys off the copies that are still as the migration left them, and off their sources.
func (p *planner) undoObjects() {
	objects := p.objectsBySlot()
	sources := map[propagate.Slot]bool{}
	for slot := range p.Sources {
		sources[slot] = true
	}
	for _, slot := range sortedSlots(p.Copies) {
		object := objects[slot]
		if object == nil {
			continue
		}
		from := object.Labels[v1alpha1.LabelInheritedFrom]
		sources[slot.At(p.Copies[slot])] = true
		if from == "" || propagate.ParseHash(object.Annotations[v1alpha1.AnnotationSourceHash]).Mode != v1alpha1.ModeCreate {
			continue
		}
		sources[slot.At(from)] = true
		p.relabel(Release, 0, object, map[string]string{v1alpha1.LabelInheritedFrom: p.had(objectOf(object), v1alpha1.LabelInheritedFrom)},
			map[string]string{v1alpha1.AnnotationSourceHash: p.had(objectOf(object), v1alpha1.AnnotationSourceHash)})
	}
	for _, slot := range sortedSlots(sources) {
		object := objects[slot]
		if _, copied := p.Copies[slot]; object == nil || copied || p.isMadeSource(slot, object) {
			continue
		}
		labels, annotations := map[string]string{}, map[string]string{}
		if mode := object.Labels[v1alpha1.LabelPropagate]; mode == v1alpha1.ModeCreate || mode == v1alpha1.ModeNone && p.Sources[slot].Mode == mode {
			labels[v1alpha1.LabelPropagate] = p.had(objectOf(object), v1alpha1.LabelPropagate)
		}
		if s := p.Sources[slot].Select; s != "" && object.Annotations[v1alpha1.AnnotationSelect] == s {
			annotations[v1alpha1.AnnotationSelect] = p.had(objectOf(object), v1alpha1.AnnotationSelect)
		}
		p.relabel(Release, 1, object, labels, annotations)
	}
}

// undoRest wakes the other operator, and forgets the migration.
func (p *planner) undoRest() {
	record := p.Peer.Record
	for _, d := range p.Peer.Deployments {
		if replicas, known := record.Replicas[objectOf(d.PartialObjectMetadata).String()]; known {
			p.scale(Wake, 0, d, replicas)
		}
	}
	for _, w := range p.Peer.Webhooks {
		if policies, known := record.Policies[objectOf(w.PartialObjectMetadata).String()]; known {
			p.setPolicies(Wake, 1, w, policies)
		}
	}
	p.restoreGrants()
	p.steps = append(p.steps, Step{Phase: Wake, wave: 3, Verb: Delete, Object: p.Peer.RecordAt, uid: p.Peer.RecordUID})
}
