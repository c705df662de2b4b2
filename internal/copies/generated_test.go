package copies_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

func TestPlanLabel(t *testing.T) {
	controlled := []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Widget", Name: "w", UID: "w1", Controller: new(true)}}
	entry := func(manager string, operation metav1.ManagedFieldsOperationType) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:tenancy.warren.dev/propagate":{}}}}`)}}
	}
	ours := entry(copies.GeneratedManager, metav1.ManagedFieldsOperationApply)
	labels := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	for name, c := range map[string]struct {
		reason string
		meta   metav1.ObjectMeta
		wanted string
		none   bool // whether nothing is kept of the object
		apply  bool
	}{
		"PROP-G1 an object without label is labelled if " +
			"its generator asks for that": {reason: "it has no label yet", meta: metav1.ObjectMeta{OwnerReferences: controlled},
			wanted: "update", apply: true},
		"PROP-G1 an object with the wanted label gets no write": {reason: "as it should be", meta: metav1.ObjectMeta{OwnerReferences: controlled,
			Labels: labels(v1alpha1.LabelPropagate, "update"), ManagedFields: ours}, wanted: "update"},
		"PROP-G1 the label follows the " +
			"annotation to another mode": {reason: "the annotation has changed", meta: metav1.ObjectMeta{OwnerReferences: controlled,
			Labels: labels(v1alpha1.LabelPropagate, "update"), ManagedFields: ours}, wanted: "create", apply: true},
		"PROP-G2 an owner that is no controller is no generator": {reason: "an owner is no controller",
			meta:   metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Widget", UID: "w1"}}},
			wanted: "update", none: true},
		"PROP-G2 a user's label stays, whatever its value": {reason: "of whatever value", meta: metav1.ObjectMeta{OwnerReferences: controlled,
			Labels: labels(v1alpha1.LabelPropagate, "none")}, wanted: "update"},
		"PROP-G2 a label that a user updated by the operator's manager name stays": {
			reason: "an update is no apply", meta: metav1.ObjectMeta{OwnerReferences: controlled, Labels: labels(v1alpha1.LabelPropagate, "create"),
				ManagedFields: entry(copies.GeneratedManager, metav1.ManagedFieldsOperationUpdate)}, wanted: "",
		},
		"PROP-G2 the operator's label is removed " +
			"when the annotation is": {reason: "our label goes", meta: metav1.ObjectMeta{OwnerReferences: controlled,
			Labels: labels(v1alpha1.LabelPropagate, "update"), ManagedFields: ours}, wanted: "", apply: true},
		"PROP-G2 the operator's label is removed when the object has no " +
			"controller any more": {reason: "our label goes", meta: metav1.ObjectMeta{Labels: labels(v1alpha1.LabelPropagate, "update"),
			ManagedFields: ours}, wanted: "", apply: true},
		"a copy": {reason: "is never a source", meta: metav1.ObjectMeta{OwnerReferences: controlled,
			Labels: labels(v1alpha1.LabelInheritedFrom, "acme")}, wanted: "update"},
		"terminating": {reason: "nothing new comes of it", meta: metav1.ObjectMeta{OwnerReferences: controlled,
			DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}, wanted: "update"},
	} {
		t.Run(name, func(t *testing.T) {
			got := copies.GeneratedOf(&c.meta)
			if (got == nil) != c.none {
				t.Fatalf("%s: kept %v", c.reason, got)
			}
			if got != nil && got.PlanLabel(c.wanted) != c.apply {
				t.Errorf("%s: apply %t, want %t", c.reason, !c.apply, c.apply)
			}
		})
	}
}

func TestGeneratedMode(t *testing.T) {
	for value, want := range map[string]string{"": "", "create": "create", "update": "update", "none": "", "Update": "Update"} {
		meta := &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationPropagateGenerated: value}}
		if got := copies.GeneratedMode(meta); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
		if got, want := copies.IsMode(want), value != "Update"; got != want {
			t.Errorf("PROP-G7 %q: is a mode %t, want %t", value, got, want)
		}
	}
}
