package lnamespace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// labelVerdict is condition BillingLabelled of a tenant: whether the labels that name who pays are on each namespace of
// its tree. An empty reason means that there is no condition, because the configuration names no such labels or the
// LNamespace owns no root.
type labelVerdict struct {
	reason  v1alpha1.Reason
	message string
}

// decideBillingLabels returns which of the configured labels the namespaces of the tenant can't have, and why.
func decideBillingLabels(s *forest.Snapshot, lns *v1alpha1.LNamespace) labelVerdict {
	if s.Rules().Billing == (forest.BillingKeys{}) || !s.Owns(lns.Name, string(lns.UID)) {
		return labelVerdict{}
	}
	v := labelVerdict{reason: v1alpha1.ReasonLabelled, message: "the namespaces of the tree have the values of spec.billing in the labels " +
		"of billing.namespaceLabels"}
	invalid, taken := forest.BillingLabelProblems(s, lns.Name)
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(taken)) {
		v.reason = v1alpha1.ReasonKeyTaken
		problems = append(problems, fmt.Sprintf("label %s has another value on %s, and the operator keeps that value. A cluster admin can "+
			"remove the label where it was set: on one of these namespaces, on a namespace above them, or on their template",
			key, forest.Few(taken[key])))
	}
	for _, label := range invalid {
		v.reason = v1alpha1.ReasonInvalidLabelValue
		problems = append(problems, fmt.Sprintf("%s %q can't be the value of a label, so no namespace has label %s: choose at most 63 letters, "+
			"digits, '-', '_' and '.', "+
			"with a letter or digit at both ends; the ledger takes any value", label.Field, label.Value, label.Key))
	}
	if len(problems) > 0 {
		v.message = strings.Join(problems, "; ")
	}
	return v
}

func (v labelVerdict) isGood() bool { return v.reason == "" || v.reason == v1alpha1.ReasonLabelled }

// writeTo puts the verdict into a status.
func (v labelVerdict) writeTo(status *v1alpha1.LNamespaceStatus, generation int64) {
	if v.reason == "" {
		meta.RemoveStatusCondition(&status.Conditions, string(v1alpha1.ConditionBillingLabelled))
		return
	}
	labelled := metav1.ConditionTrue
	if !v.isGood() {
		labelled = metav1.ConditionFalse
	}
	v1alpha1.SetCondition(&status.Conditions, generation, v1alpha1.ConditionBillingLabelled, labelled, v.reason, v.message)
}

// announceBillingLabels sends an Event when the tenant's namespaces can't have a label, unless the condition has that
// reason already.
func (r *Reconciler) announceBillingLabels(lns *v1alpha1.LNamespace, v labelVerdict) {
	was := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionBillingLabelled)
	if !v.isGood() && (was == nil || was.Reason != string(v.reason)) {
		r.Events.Event(lns, corev1.EventTypeWarning, string(v.reason), v.message)
	}
}
