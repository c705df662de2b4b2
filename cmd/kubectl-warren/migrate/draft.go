package migrate

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// draft collects the steps of a plan, in any order, and its gaps. A gap is a setting of the peer, which is the other
// operator, that has no counterpart in Warren.
type draft struct {
	steps []Step
	gaps  []Gap
	// excesses are the limits that trees would exceed.
	excesses []string
}

// madeHere is the value of label created-by on the objects that a migration makes: an undo deletes no others.
const madeHere = "kubectl-warren-migrate"

// addDraftGap adds a gap.
func (d *draft) addDraftGap(what, instead string) { d.gaps = append(d.gaps, Gap{what, instead}) }

// phaseOrder has the phases of a plan in their order, and then those of an undo.
var phaseOrder = []Phase{Rest, Tenants, Sources, Copies, Namespaces, Hierarchy, Budgets, Finish, Leave, Owners, Release, Wake}

// sortedPlan returns the plan, with the steps sorted by phase and wave.
func (d *draft) sortedPlan() Plan {
	slices.SortStableFunc(d.steps, func(a, b Step) int {
		if a.Phase != b.Phase {
			return slices.Index(phaseOrder, a.Phase) - slices.Index(phaseOrder, b.Phase)
		}
		return a.wave - b.wave
	})
	if d.steps == nil {
		d.steps = []Step{}
	}
	if d.gaps == nil {
		d.gaps = []Gap{}
	}
	return Plan{Steps: d.steps, Joins: []Join{}, NewCopies: []NewCopies{}, KeyChanges: []KeyChange{}, Gaps: d.gaps}
}

// withLabelChanges returns a copy of the labels with changes applied. The value "" removes a label.
func withLabelChanges(now, changes map[string]string) map[string]string {
	result := maps.Clone(now)
	if result == nil {
		result = map[string]string{}
	}
	for key, value := range changes {
		if result[key] = value; value == "" {
			delete(result, key)
		}
	}
	return result
}

// pendingChanges returns the changes that aren't made yet, as part of a merge patch; nil if all are made.
func pendingChanges(now, changes map[string]string) map[string]any {
	var patch map[string]any
	for key, value := range changes {
		have, there := now[key]
		if have == value && there == (value != "") {
			continue
		}
		if patch == nil {
			patch = map[string]any{}
		}
		if patch[key] = any(value); value == "" {
			patch[key] = nil
		}
	}
	return patch
}

// addRelabelStep adds the step that sets labels and annotations of an object, if some of them have other values.
func (d *draft) addRelabelStep(phase Phase, wave int, object *metav1.PartialObjectMetadata,
	labels, annotations map[string]string) {
	metadata := map[string]any{}
	if patch := pendingChanges(object.Labels, labels); patch != nil {
		metadata["labels"] = patch
	}
	if patch := pendingChanges(object.Annotations, annotations); patch != nil {
		metadata["annotations"] = patch
	}
	if len(metadata) > 0 {
		d.addPatchStep(phase, wave, object, map[string]any{"metadata": metadata})
	}
}

// addPatchStep adds the step that patches an object. The patch fails if the object has changed since it was read.
func (d *draft) addPatchStep(phase Phase, wave int, object *metav1.PartialObjectMetadata, body any) {
	d.steps = append(d.steps, Step{Phase: phase, wave: wave, Verb: Patch, Object: objectFromMetadata(object), Body: body,
		uid: string(object.UID), version: object.ResourceVersion})
}

func objectFromMetadata(object *metav1.PartialObjectMetadata) Object {
	return Object{object.APIVersion, object.Kind, object.Namespace, object.Name}
}

// patchHierarchy adds the step that changes the spec of a HierarchyConfiguration.
func (d *draft) patchHierarchy(phase Phase, hc *v1alpha1.HierarchyConfiguration, spec map[string]any) {
	d.steps = append(d.steps, Step{Phase: phase, Verb: Patch, Object: warrenObject("HierarchyConfiguration", hc.Namespace, hc.Name),
		Body: map[string]any{"spec": spec}, uid: string(hc.UID), version: hc.ResourceVersion})
}

func warrenObject(kind, namespace, name string) Object {
	return Object{v1alpha1.GroupVersion.String(), kind, namespace, name}
}

// addCreateStep adds the step that creates an object of a kind of Warren's.
func (d *draft) addCreateStep(phase Phase, wave int, object Object, spec any) {
	metadata := map[string]any{"name": object.Name, "labels": map[string]any{v1alpha1.LabelCreatedBy: madeHere}}
	if object.Namespace != "" {
		metadata["namespace"] = object.Namespace
	}
	d.steps = append(d.steps, Step{Phase: phase, wave: wave, Verb: Create, Object: object, Body: map[string]any{
		"apiVersion": object.APIVersion, "kind": object.Kind, "metadata": metadata, "spec": spec,
	}})
}

// addDeleteStep adds the step of phase Owners that deletes an object.
func (d *draft) addDeleteStep(wave int, object Object, now metav1.Object) {
	d.steps = append(d.steps, Step{Phase: Owners, wave: wave, Verb: Delete, Object: object, uid: string(now.GetUID()),
		version: now.GetResourceVersion()})
}

// addScaleStep adds the step that sets the number of replicas of a Deployment, if it asks for another number.
func (d *draft) addScaleStep(phase Phase, wave int, deployment Deployment, replicas int64) {
	if deployment.Wanted != replicas {
		d.addPatchStep(phase, wave, deployment.PartialObjectMetadata,
			map[string]any{"spec": map[string]any{"replicas": replicas}})
	}
}

// addWebhookStep adds the step that sets the failure policies of webhooks, and adds restCondition to their match
// conditions if atRest is true, or removes it. There is no step if nothing must change.
func (d *draft) addWebhookStep(phase Phase, wave int, w Webhooks, policies []string, atRest bool) {
	var changes []any
	for i, c := range w.Conditions {
		path := fmt.Sprintf("/webhooks/%d/matchConditions", i)
		switch {
		case c.ours >= 0 && !atRest:
			changes = append(changes, map[string]any{"op": "remove", "path": fmt.Sprintf("%s/%d", path, c.ours)})
		case c.ours >= 0 || !atRest || !c.wanted:
		case c.count == 0:
			changes = append(changes, map[string]any{"op": "add", "path": path, "value": []any{restCondition}})
		default:
			changes = append(changes, map[string]any{"op": "add", "path": path + "/-", "value": restCondition})
		}
	}
	for i, policy := range w.Policies {
		if i < len(policies) && policies[i] != policy {
			changes = append(changes, map[string]any{"op": "replace", "path": fmt.Sprintf("/webhooks/%d/failurePolicy", i), "value": policies[i]})
		}
	}
	if len(changes) > 0 {
		guard := map[string]any{"op": "test", "path": "/metadata/resourceVersion", "value": w.ResourceVersion}
		d.addPatchStep(phase, wave, w.PartialObjectMetadata, append([]any{guard}, changes...))
	}
}
