package migrate

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// The phases of undoing, in their order.
const (
	Leave   Phase = "leave"   // namespaces leave Warren's trees, the deepest first
	Owners  Phase = "owners"  // SubNamespaces, HierarchyConfigurations, sources and LNamespaces that the migration made are deleted
	Release Phase = "release" // copies and sources lose Warren's keys; inherited keys and finalizers are restored
	Wake    Phase = "wake"    // the other operator gets its webhooks and replicas back
)

// undoer makes one plan that undoes a migration, by its record.
type undoer struct {
	*Estate
	Cluster
	*outlook
	draft *draft
}

// NewUndo returns the plan that undoes the migration, so that the other operator can run again. Without a record the
// plan is empty: no migration has begun, or all of it is undone.
func NewUndo(estate *Estate, c Cluster) (Plan, error) {
	switch record := c.Peer.Record; {
	case record == nil:
		return Plan{}, nil
	case record.Finished:
		return Plan{}, fmt.Errorf("the last step has been taken, according to %s: the copies follow Warren's sources, and nothing can be undone",
			c.Peer.RecordAt)
	case estate.IsGone:
		return Plan{}, fmt.Errorf("the CustomResourceDefinitions of %s are deleted, so it can't run again: kubectl warren migrate %s "+
			"--finish takes the last step", estate.peer.title, estate.peer.word)
	}
	d := &draft{gaps: slices.Clone(estate.Gaps)}
	u := &undoer{Estate: estate, Cluster: c, outlook: forecastOutlook(estate, c, d), draft: d}
	if err := u.checkChangesSince(); err != nil {
		return Plan{}, err
	}
	u.undoNamespaces()
	u.undoHierarchyChanges()
	u.undoTreeQuotas()
	u.undoTenantObjects()
	u.undoCopyLabels()
	u.undoPeerShutdown()
	return d.sortedPlan(), nil
}

// undoNamespaces removes the labels that placed the namespaces, except those that they had before. It starts with the
// leaves, because a namespace with children can't leave its tree.
func (u *undoer) undoNamespaces() {
	deepest := len(u.joining)
	for _, name := range slices.Sorted(maps.Keys(u.joining)) {
		now := u.Namespaces[name]
		off := map[string]string{}
		for key, value := range u.joining[name].namespaceLabels() {
			if now.Labels[key] == value {
				off[key] = u.Peer.Record.valueBefore(objectFromMetadata(now), key)
			}
		}
		u.draft.addRelabelStep(Leave, deepest-u.depthInForest(name), now, off, nil)
	}
}

func (u *undoer) undoHierarchyChanges() {
	for _, name := range slices.Sorted(maps.Keys(u.joining)) {
		place := u.joining[name]
		if sub := u.Subs[place.Parent+"/"+name]; sub != nil &&
			u.Peer.Record.isMadeByMigration(warrenObject("SubNamespace", place.Parent, name), sub) {
			u.draft.addDeleteStep(0, warrenObject("SubNamespace", sub.Namespace, name), sub)
		}
		if hc := u.Hierarchies[name]; hc != nil && (u.Peer.Record.isMadeByMigration(warrenObject("HierarchyConfiguration", name, hc.Name), hc) ||
			u.isMadeByOperator(hc, place)) {
			u.draft.addDeleteStep(0, warrenObject("HierarchyConfiguration", name, hc.Name), hc)
		} else if hc != nil {
			u.undoHierarchyOf(hc, place)
		}
	}
}

// undoHierarchyOf removes what the migration wrote from a HierarchyConfiguration that is not deleted, because it has
// other settings or is older.
func (u *undoer) undoHierarchyOf(hc *v1alpha1.HierarchyConfiguration, place Place) {
	spec, object := map[string]any{}, warrenObject("HierarchyConfiguration", hc.Namespace, hc.Name)
	if place.Cascading && hc.Spec.AllowCascadingDeletion &&
		u.Peer.Record.valueBefore(object, cascadingField) != v1alpha1.True {
		spec[cascadingField] = false
	}
	if left := withoutMetadataKeys(hc.Spec.PropagatedLabels,
		u.Peer.Record.keysAddedSince(object, labelsField, place.Labels)); len(left) < len(hc.Spec.PropagatedLabels) {
		spec[labelsField] = left
	}
	if left := withoutMetadataKeys(hc.Spec.PropagatedAnnotations,
		u.Peer.Record.keysAddedSince(object, annotationsField,
			place.Annotations)); len(left) < len(hc.Spec.PropagatedAnnotations) {
		spec[annotationsField] = left
	}
	if len(spec) > 0 {
		u.draft.patchHierarchy(Owners, hc, spec)
	}
}

func withoutMetadataKeys(have []v1alpha1.MetadataKey, taken []string) []v1alpha1.MetadataKey {
	return slices.DeleteFunc(slices.Clone(have),
		func(key v1alpha1.MetadataKey) bool { return slices.Contains(taken, string(key)) })
}

// isSourceOfMigration reports whether an object is a source that this migration made.
func (u *undoer) isSourceOfMigration(slot copies.Slot, object *metav1.PartialObjectMetadata) bool {
	_, made := u.Made[slot]
	return made && u.Peer.Record.isMadeByMigration(objectFromMetadata(object), object)
}

// undoTenantObjects deletes the sources and then the LNamespaces that the migration made. Warren then deletes the root
// namespaces that it made for these LNamespaces.
func (u *undoer) undoTenantObjects() {
	objects := u.objectsBySlot()
	for _, slot := range sortedSlots(u.Made) {
		if object := objects[slot]; object != nil && u.isSourceOfMigration(slot, object) {
			u.draft.addDeleteStep(0, objectFromMetadata(object), object)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.Tenants)) {
		if lns := u.LNamespaces[name]; lns != nil &&
			u.Peer.Record.isMadeByMigration(warrenObject("LNamespace", "", name), lns) {
			u.draft.addDeleteStep(1, warrenObject("LNamespace", "", name), lns)
		}
	}
}

// undoCopyLabels restores the earlier values of Warren's keys on copies and their sources, and the other operator's
// label on copies. The migration left the copies in mode create. A copy that is no longer in that mode stays as it is.
func (u *undoer) undoCopyLabels() {
	objects := u.objectsBySlot()
	sources := map[copies.Slot]bool{}
	for slot := range u.Sources {
		sources[slot] = true
	}
	for _, slot := range sortedSlots(u.Copies) {
		object := objects[slot]
		if object == nil {
			continue
		}
		from := object.Labels[v1alpha1.LabelInheritedFrom]
		sources[slot.At(u.Copies[slot])] = true
		if from == "" || copies.ParseHash(object.Annotations[v1alpha1.AnnotationSourceHash]).Mode != v1alpha1.ModeCreate {
			continue
		}
		sources[slot.At(from)] = true
		labels := map[string]string{v1alpha1.LabelInheritedFrom: u.Peer.Record.valueBefore(objectFromMetadata(object),
			v1alpha1.LabelInheritedFrom)}
		if key := u.peer.copyLabel.key; u.Peer.Record.valueBefore(objectFromMetadata(object), key) != "" {
			labels[key] = u.peer.copyLabel.value
		}
		u.draft.addRelabelStep(Release, 0, object, labels,
			map[string]string{v1alpha1.AnnotationSourceHash: u.Peer.Record.valueBefore(objectFromMetadata(object),
				v1alpha1.AnnotationSourceHash)})
	}
	for _, slot := range sortedSlots(sources) {
		object := objects[slot]
		if _, copied := u.Copies[slot]; object == nil || copied || u.isSourceOfMigration(slot, object) {
			continue
		}
		labels, annotations := map[string]string{}, map[string]string{}
		if mode := object.Labels[v1alpha1.LabelPropagate]; mode == v1alpha1.ModeCreate || mode == v1alpha1.ModeNone &&
			u.Sources[slot].Mode == mode {
			labels[v1alpha1.LabelPropagate] = u.Peer.Record.valueBefore(objectFromMetadata(object), v1alpha1.LabelPropagate)
		}
		if s := u.Sources[slot].Select; s != "" && object.Annotations[v1alpha1.AnnotationSelect] == s {
			annotations[v1alpha1.AnnotationSelect] = u.Peer.Record.valueBefore(objectFromMetadata(object),
				v1alpha1.AnnotationSelect)
		}
		u.draft.addRelabelStep(Release, 1, object, labels, annotations)
	}
}

// undoPeerShutdown restores inherited values, finalizers, replicas, webhooks and grants as the record has them, and
// then deletes the record.
func (u *undoer) undoPeerShutdown() {
	record := u.Peer.Record
	u.undoInheritedValues()
	u.undoFinalizers()
	for _, d := range u.Peer.Deployments {
		if replicas, known := record.Replicas[objectFromMetadata(d.PartialObjectMetadata).String()]; known {
			u.draft.addScaleStep(Wake, 0, d, replicas)
		}
	}
	for _, w := range u.Peer.Webhooks {
		if policies, known := record.Policies[objectFromMetadata(w.PartialObjectMetadata).String()]; known {
			u.draft.addWebhookStep(Wake, 1, w, policies, false)
		}
	}
	u.restorePeerGrants()
	u.draft.steps = append(u.draft.steps, Step{Phase: Wake, wave: 3, Verb: Delete, Object: u.Peer.RecordAt, uid: u.Peer.RecordUID,
		version: u.Peer.RecordVersion})
}

// restorePeerGrants restores the subjects of the grants. Its wave comes after the one that restores the other
// operator's webhooks.
func (u *undoer) restorePeerGrants() {
	for _, g := range u.Peer.Grants {
		before := u.Peer.Record.Subjects[objectFromMetadata(g.PartialObjectMetadata).String()]
		if len(g.Subjects) == 0 && len(before) > 0 {
			u.draft.addPatchStep(Wake, 2, g.PartialObjectMetadata, map[string]any{"subjects": before})
		}
	}
}
