package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType is the type of a condition of Warren's kinds.
type ConditionType string

// Types of conditions. ConditionReady and ConditionStalled follow kstatus.
const (
	ConditionReady           ConditionType = "Ready"
	ConditionStalled         ConditionType = "Stalled"
	ConditionNamespaceReady  ConditionType = "NamespaceReady"
	ConditionAccessReady     ConditionType = "AccessReady"
	ConditionMetadataSynced  ConditionType = "MetadataSynced"
	ConditionHalted          ConditionType = "Halted"
	ConditionParentApplied   ConditionType = "ParentApplied"
	ConditionChildrenReady   ConditionType = "ChildrenReady"
	ConditionPropagated      ConditionType = "Propagated"
	ConditionBillingExported ConditionType = "BillingExported"
	ConditionBillingLabelled ConditionType = "BillingLabelled"
	ConditionConflictFree    ConditionType = "ConflictFree"
)

// SetCondition sets a condition and reports whether that changed anything. The transition time changes only when the status does.
func SetCondition(conditions *[]metav1.Condition, generation int64, t ConditionType, status metav1.ConditionStatus, reason Reason,
	message string) bool {
	return meta.SetStatusCondition(conditions, metav1.Condition{
		Type: string(t), Status: status, ObservedGeneration: generation, Reason: string(reason), Message: message,
	})
}

// KeepConditions removes the conditions of all other types: a user with the right to write the status could add a condition that the
// operator would never remove.
func KeepConditions(conditions *[]metav1.Condition, types ...ConditionType) {
	*conditions = slices.DeleteFunc(*conditions, func(c metav1.Condition) bool { return !slices.Contains(types, ConditionType(c.Type)) })
}

// FindCondition returns the condition of type t, or nil.
func FindCondition(conditions []metav1.Condition, t ConditionType) *metav1.Condition {
	return meta.FindStatusCondition(conditions, string(t))
}

// NameLost reports whether the operator has found, for the current generation of the SubNamespace, that a namespace outside its tree
// has the name. That is final: the SubNamespace does not get the name when it becomes free.
func (s *SubNamespace) NameLost() bool {
	ready := FindCondition(s.Status.Conditions, ConditionReady)
	return ready != nil && ready.Reason == string(ReasonNameTaken) && ready.ObservedGeneration == s.Generation
}

// NameLost reports whether another namespace had the name of the LNamespace when its spec was last written. Without this rule, the
// creator of an LNamespace could wait until the owner of the name deletes the namespace to create it again.
func (l *LNamespace) NameLost() bool {
	was := FindCondition(l.Status.Conditions, ConditionNamespaceReady)
	return was != nil && was.Reason == string(ReasonNamespaceConflict) && was.ObservedGeneration == l.Generation
}
