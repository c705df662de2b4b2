package simulation

import (
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// The functions of this file say what ResourceDistributions ask for, by the text of docs/behaviour/distribution.md. They share only the
// forest with the product, and know only the fields that histories set.

// template returns the name and the data of the ConfigMap that a ResourceDistribution holds.
func template(rd *v1alpha1.ResourceDistribution) (name string, data map[string]any) {
	var o struct {
		Metadata struct{ Name string }
		Data     map[string]any
	}
	if err := json.Unmarshal(rd.Spec.Resource.Raw, &o); err != nil {
		panic(err) // the model writes it
	}
	return o.Metadata.Name, o.Data
}

// The answers to a question about a world.
const (
	no     = "no"
	yes    = "yes"
	either = "" // the page leaves it open, or it depends on what the operator has recorded
)

// isTarget reports whether a namespace is a target. It may or may not be one if nobody knows whether it is below the tree.
func (w world) isTarget(rd *v1alpha1.ResourceDistribution, namespace string) string {
	if w.isTerminating(namespace) {
		return either // nothing is written there, and nothing is removed
	}
	if len(rd.Spec.Targets.Trees) == 0 {
		return yes
	}
	tree, met, seen := string(rd.Spec.Targets.Trees[0]), false, map[string]bool{}
	for at := namespace; at != ""; {
		n := w.forest.Namespace(at)
		if met = met || at == tree; n == nil || n.Terminating || seen[at] || w.forest.Place(at).Halted() {
			return either // halted (hierarchy.md 2.1)
		}
		seen[at] = true
		at = n.Labels[v1alpha1.LabelParent]
	}
	switch n := w.forest.Namespace(tree); {
	case !met:
		return no
	case n.Created.Before(rd.CreationTimestamp.Time):
		return yes
	}
	return either // the name may mean another namespace
}

// holdsTemplate reports whether an object has the content of a ResourceDistribution's template.
func holdsTemplate(o *object, rd *v1alpha1.ResourceDistribution) bool {
	_, data := template(rd)
	for key := range o.rest {
		if key != "apiVersion" && key != "kind" && key != "data" {
			return false
		}
	}
	return reflect.DeepEqual(o.rest["data"], any(data))
}

// mayTake reports whether a ResourceDistribution takes over an object that is not the operator's.
func mayTake(rd *v1alpha1.ResourceDistribution, o *object) string {
	propagate, isSource := o.meta.Labels[v1alpha1.LabelPropagate]
	_, isCopy := o.meta.Labels[v1alpha1.LabelInheritedFrom]
	policy := rd.Spec.ConflictPolicy
	switch {
	case policy != v1alpha1.ConflictOverwrite && (policy != v1alpha1.ConflictAdoptIdentical || !holdsTemplate(o, rd)):
		return no
	case o.meta.DeletionTimestamp != nil, isRun(o), isCopy, metav1.GetControllerOf(o.meta) != nil, o.from != "":
		return no
	case isSource && propagate == v1alpha1.ModeNone:
		return yes
	}
	return either // a source, if its namespace is in a tree
}

// checkRun: FLT-M4. A copy of a ResourceDistribution is written only where one asks for it, or has asked for it since the last moment of
// which the operator knew everything for certain. A write that leaves the content of a copy gives nothing.
func (c client) checkRun(slot copies.Slot, before, after *object, decided int) {
	if before != nil && before.from == after.from && isRun(before) && reflect.DeepEqual(before.rest, after.rest) {
		return
	}
	if !c.server.everSince(decided, func(w world) bool {
		one := w.at(distributionSlot(after.from))
		if one == nil || one.distribution.Spec.Suspend {
			return false
		}
		name, _ := template(one.distribution)
		return name == slot.Name && w.isTarget(one.distribution, slot.Namespace) != no && holdsTemplate(after, one.distribution)
	}) {
		c.fail("FLT-M4", "ResourceDistribution %s never asked for this at %s: %v", after.from, slot, after.rest)
	}
}

// checkRunDeletion: FLT-M3. A copy of a ResourceDistribution is deleted only where it is not wanted; what was taken over is never deleted.
func (c client) checkRunDeletion(slot copies.Slot, before *object, decided int) {
	isUnwanted := func(w world) bool {
		one := w.at(distributionSlot(before.from))
		return one != nil && !one.distribution.Spec.Suspend && one.distribution.Spec.DeletionPolicy == v1alpha1.DeletionDelete &&
			w.isTarget(one.distribution, slot.Namespace) != yes
	}
	if before.meta.Annotations[v1alpha1.AnnotationAdopted] != "" || !c.server.everSince(decided, isUnwanted) {
		c.fail("FLT-M3", "%s is deleted although ResourceDistribution %s wants it, or did not create it", slot, before.from)
	}
}

// judgeDistribution checks the copies and the status of a ResourceDistribution: FLT-M11.
func (h *history) judgeDistribution(rd *v1alpha1.ResourceDistribution) {
	ready := v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != rd.Generation {
		h.fail("FLT-M11", "ResourceDistribution %s: the status is not that of its spec", rd.Name)
	}
	if h.coverage != nil {
		h.coverage[covered{ended, ready.Reason}]++
	}
	name, _ := template(rd)
	reason, targets, conflicts, open, missing := v1alpha1.Reason(ready.Reason), 0, 0, false, ""
	for _, namespace := range names {
		slot := slotOf(configMaps, namespace, name)
		o, isTarget := h.server.at(slot), h.server.isTarget(rd, namespace)
		what := ""
		switch {
		case h.server.isTerminating(namespace) || rd.Spec.Suspend:
		case isTarget == either:
			open = true
		case isTarget == no:
			what = leftBy(rd, o)
		default:
			targets++
			if o == nil {
				missing = slot.String()
			} else if o.from != rd.Name || !isRun(o) || o.meta.DeletionTimestamp != nil {
				conflicts++
				if rd.Spec.ConflictPolicy == v1alpha1.ConflictOverwrite && o.from != rd.Name && mayTake(rd, o) == yes {
					what = "is not taken over"
				}
			} else {
				what = wrongIn(rd, o)
			}
		}
		if what != "" {
			h.fail("FLT-M11", "ResourceDistribution %s: %s %s", rd.Name, slot, what)
		}
	}
	if want := h.reasonOf(rd, targets, conflicts); reason != want && !open {
		h.fail("FLT-M11", "ResourceDistribution %s is %s, not %s: %s", rd.Name, reason, want, ready.Message)
	}
	if missing != "" && reason != v1alpha1.ReasonConflict && !rd.Spec.Suspend {
		h.fail("FLT-M11", "ResourceDistribution %s is %s, and %s is missing", rd.Name, reason, missing)
	}
}

// reasonOf returns the reason that condition Ready of a ResourceDistribution must have at the end.
func (h *history) reasonOf(rd *v1alpha1.ResourceDistribution, targets, conflicts int) v1alpha1.Reason {
	policy, trees := rd.Spec.ConflictPolicy, rd.Spec.Targets.Trees
	switch {
	case rd.Spec.Suspend:
		return v1alpha1.ReasonSuspended
	case conflicts > 0 && (policy == v1alpha1.ConflictFail || policy == v1alpha1.ConflictAdoptIdentical):
		return v1alpha1.ReasonConflict
	case len(trees) > 0 && h.server.forest.Namespace(string(trees[0])) == nil:
		return v1alpha1.ReasonNamespaceNotFound
	case targets == 0:
		return v1alpha1.ReasonNoTargets
	case conflicts > 0:
		return v1alpha1.ReasonSkipped
	}
	return v1alpha1.ReasonDistributed
}

// leftBy returns what is wrong with the object at the place of a copy, in a namespace that is no target; "" if nothing is.
func leftBy(rd *v1alpha1.ResourceDistribution, o *object) string {
	isOurs := o != nil && o.from == rd.Name && isRun(o) && o.meta.DeletionTimestamp == nil
	isDeleted := rd.Spec.DeletionPolicy == v1alpha1.DeletionDelete
	switch {
	case !isOurs:
	case o.meta.Annotations[v1alpha1.AnnotationLocked] != "":
		return "is locked, and is no target"
	case isDeleted && (len(o.meta.OwnerReferences) > 0 || o.meta.Annotations[v1alpha1.AnnotationAdopted] != ""):
		return "is left, and is no target"
	}
	return ""
}

// wrongIn returns what is wrong with a copy in a target; "" if nothing is.
func wrongIn(rd *v1alpha1.ResourceDistribution, o *object) string {
	isReverted, isAdopted := rd.Spec.DriftPolicy == v1alpha1.DriftRevert, o.meta.Annotations[v1alpha1.AnnotationAdopted] != ""
	isOwned := metav1.IsControlledBy(o.meta, rd)
	switch {
	case (isReverted || !o.edited) && !holdsTemplate(o, rd):
		return "has another content than the template"
	case (o.meta.Annotations[v1alpha1.AnnotationLocked] != "") != isReverted:
		return "has the lock of another driftPolicy"
	case isOwned != (rd.Spec.DeletionPolicy == v1alpha1.DeletionDelete && !isAdopted):
		return "has the owner of another deletionPolicy"
	}
	return ""
}
