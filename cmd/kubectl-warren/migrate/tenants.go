package migrate

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// MadeSource is a source that the migration makes, where the other operator wrote equal objects into many namespaces
// without a source.
type MadeSource struct {
	// APIVersion is the API version of its kind.
	APIVersion string
	// Labels and Annotations are those that users configured for these objects, without the other operator's own.
	Labels, Annotations map[string]string
	// Content has its other fields, without kind and metadata.
	Content map[string]any
}

// futureRootOf returns the root namespace that Warren makes for an LNamespace.
func futureRootOf(name string) *metav1.PartialObjectMetadata {
	root := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}}}
	root.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	return root
}

// planTenantObjects adds the steps that make the LNamespaces. One whose root exists already is made, and adopts that
// root, in the last step only: a root is deleted with its LNamespace, so an adoption can't be undone.
func (p *planner) planTenantObjects() {
	for _, name := range slices.Sorted(maps.Keys(p.Tenants)) {
		object := warrenObject("LNamespace", "", name)
		root := p.Namespaces[name]
		switch {
		case p.LNamespaces[name] != nil:
			p.markForAdoption(p.LNamespaces[name], root)
		case root == nil:
			p.draft.addCreateStep(Tenants, 0, object, p.Tenants[name])
		default:
			p.draft.addRelabelStep(Finish, 1, root, nil, map[string]string{v1alpha1.AnnotationAdopt: v1alpha1.MarkClusterAdmins})
			p.draft.addCreateStep(Finish, 2, object, p.Tenants[name])
		}
	}
}

// markForAdoption adds the step that writes the UID of the LNamespace into the mark adopt of its root, if a cluster
// admin made the LNamespace and it has no root yet.
func (p *planner) markForAdoption(lns *v1alpha1.LNamespace, root *metav1.PartialObjectMetadata) {
	if hasNoRecordedCreator(lns) && root != nil && p.Places[lns.Name].Type == v1alpha1.TypeRoot {
		p.draft.addRelabelStep(Finish, 3, root, nil, map[string]string{v1alpha1.AnnotationAdopt: string(lns.UID)})
	}
}

// hasNoRecordedCreator reports whether an LNamespace has no root yet and no annotation that names its creator.
func hasNoRecordedCreator(lns *v1alpha1.LNamespace) bool {
	return lns.Status.Namespace != lns.Name && lns.Annotations[v1alpha1.AnnotationCreator] == ""
}

// tenantToWaitFor returns what the next wave has to wait for, or "": an LNamespace that was made must get its root
// namespace, and one that is being deleted must be gone before the other operator is started.
func tenantToWaitFor(wave []Step, estate *Estate, c Cluster) string {
	for _, name := range slices.Sorted(maps.Keys(estate.Tenants)) {
		lns := c.LNamespaces[name]
		switch {
		case lns == nil || len(wave) > 0 && slices.Contains([]Phase{Rest, Tenants, Leave, Owners}, wave[0].Phase):
		case lns.DeletionTimestamp != nil:
			return fmt.Sprintf("LNamespace %s to be deleted: kubectl describe lns %s shows the cause", name, name)
		case len(wave) > 0 && slices.Contains([]Phase{Release, Wake}, wave[0].Phase):
		// next case: the wave itself may write the mark adopt
		case len(wave) > 0 && wave[0].Phase == Finish && hasNoRecordedCreator(lns) && estate.Places[name].Type == v1alpha1.TypeRoot:
		case lns.Status.Namespace != name:
			return fmt.Sprintf("the root namespace of LNamespace %s: kubectl describe lns %s shows the cause", name, name)
		}
	}
	return ""
}

// findMissingSources returns the sources to be made. After the last step it returns none, because a source that is
// missing then was deleted on purpose.
func findMissingSources(estate *Estate, c Cluster) map[copies.Slot]*metav1.PartialObjectMetadata {
	unmade := map[copies.Slot]*metav1.PartialObjectMetadata{}
	if c.Peer.Record.isMigrationFinished() {
		return unmade
	}
	objects := c.objectsBySlot()
	for slot, made := range estate.Made {
		if objects[slot] != nil {
			continue
		}
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: slot.Namespace, Name: slot.Name,
			Annotations: made.Annotations}}
		object.APIVersion, object.Kind = made.APIVersion, slot.Kind.Kind
		object.Labels = withLabelChanges(made.Labels, map[string]string{v1alpha1.LabelCreatedBy: madeHere,
			v1alpha1.LabelPropagate: v1alpha1.ModeCreate})
		unmade[slot] = object
	}
	return unmade
}

// planSourceCreation adds the step that makes a source, in mode create as all sources are until the last step.
func (p *planner) planSourceCreation(slot copies.Slot, object *metav1.PartialObjectMetadata) {
	metadata := map[string]any{"namespace": object.Namespace, "name": object.Name, "labels": object.Labels}
	if len(object.Annotations) > 0 {
		metadata["annotations"] = object.Annotations
	}
	body := map[string]any{"apiVersion": object.APIVersion, "kind": object.Kind, "metadata": metadata}
	maps.Copy(body, p.Made[slot].Content)
	p.draft.steps = append(p.draft.steps, Step{Phase: Sources, Verb: Create, Object: objectFromMetadata(object), Body: body})
}

// sourcesAlreadyMade returns the objects that already exist where a source would be made.
func (p *planner) sourcesAlreadyMade() (found []*metav1.PartialObjectMetadata) {
	objects := p.objectsBySlot()
	for slot := range p.Made {
		if object := objects[slot]; object != nil {
			found = append(found, object)
		}
	}
	return found
}

// planOwnerRemovals adds the steps that remove the ownerReferences to the other operator's objects. By these, the
// garbage collector would delete namespaces and objects of users. They belong to the last step, after the change of the
// record: until then the other operator can be started again, and needs these references.
func (p *planner) planOwnerRemovals() {
	for _, object := range p.Owned {
		var kept []metav1.OwnerReference
		for _, reference := range object.OwnerReferences {
			if apiGroupOfOwner(reference) != p.OwnerGroup {
				kept = append(kept, reference)
			}
		}
		if len(kept) < len(object.OwnerReferences) {
			var value any // null where none is left
			if len(kept) > 0 {
				value = kept
			}
			p.draft.addPatchStep(Finish, 1, object, map[string]any{"metadata": map[string]any{"ownerReferences": value}})
		}
	}
}

// apiGroupOfOwner returns the API group of an owner.
func apiGroupOfOwner(reference metav1.OwnerReference) string {
	group, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		return ""
	}
	return group.Group
}
