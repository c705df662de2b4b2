package v1alpha1

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType is the type of a condition of Warren's kinds.
type ConditionType string

// Types of conditions. ConditionReady and ConditionStalled follow kstatus. Each comment has the form "kinds: meaning. Ready: effect".
const (
	// All kinds: the operator has done everything that the object asks for. Ready: what kubectl wait, Flux and Argo CD look at.
	ConditionReady ConditionType = "Ready"
	// SubNamespace, ResourceDistribution: True while a person must act; the condition exists only then. Ready: False.
	ConditionStalled ConditionType = "Stalled"
	// LNamespace: the root namespace exists and belongs to the LNamespace. Ready: False with its reason, before the two next ones.
	ConditionNamespaceReady ConditionType = "NamespaceReady"
	// LNamespace: everybody on the three lists has their rights, and nobody else. Ready: False with its reason. `Disabled` changes nothing,
	// because a cluster admin has switched the controller off. Nor does `GrantedUnvetted`: the rights are granted, and `doctor` and an alert
	// name the dangerous ones.
	ConditionAccessReady ConditionType = "AccessReady"
	// LNamespace: False while the root lacks something of its template; the condition exists only then. Ready: False with its reason.
	ConditionTemplateReady ConditionType = "TemplateReady"
	// SubNamespace, HierarchyConfiguration: the namespace has the keys of its object, its ancestors and its template. Ready: False with its
	// reason. But a SubNamespace stays ready with `KeyNotAllowed` and `Halted`: its namespace exists and can be used, and an Event names the
	// keys.
	ConditionMetadataSynced ConditionType = "MetadataSynced"
	// HierarchyConfiguration: True while something above the namespace is wrong, so that nothing is written there. Ready: False.
	ConditionHalted ConditionType = "Halted"
	// HierarchyConfiguration: the namespace has the place that was asked for. Ready: False with its reason.
	ConditionParentApplied ConditionType = "ParentApplied"
	// HierarchyConfiguration: all required children exist. Ready: False with its reason.
	ConditionChildrenReady ConditionType = "ChildrenReady"
	// HierarchyConfiguration: copies and sources in the namespace are as they should be. Ready: False with its reason. But
	// `DescendantConflict` changes nothing: the HierarchyConfiguration of the namespace below is not ready.
	ConditionPropagated ConditionType = "Propagated"
	// LNamespace: the warehouse has every change of the tenant. Ready: unchanged, because the tenant's people lack nothing. Alerts name what
	// is wrong, and the exporter writes it later.
	ConditionBillingExported ConditionType = "BillingExported"
	// LNamespace: the namespaces have the labels of the configuration's `billing.namespaceLabels`. Ready: unchanged, because only reports
	// outside of the operator read these labels. A Warning Event names the label.
	ConditionBillingLabelled ConditionType = "BillingLabelled"
	// LNamespace: the budget of the tree holds. It exists only with a budget. Ready: False with `NotInstalled`, `Forbidden`,
	// `Invalid` and `NotCounted`. `Exceeded` changes nothing: nothing new is admitted, as with a full ResourceQuota.
	ConditionBudgetEnforced ConditionType = "BudgetEnforced"
	// ResourceDistribution: no other object has the name of a copy. Ready: False, unless `conflictPolicy` allows other targets to be served:
	// then True with `Skipped`, because the spec asks for that.
	ConditionConflictFree ConditionType = "ConflictFree"
	// SudoRequest: the requester has sudo now. Ready: SudoRequests have none.
	ConditionActive ConditionType = "Active"
)

var conditionTypes = []ConditionType{ConditionReady, ConditionStalled, ConditionNamespaceReady, ConditionAccessReady,
	ConditionTemplateReady, ConditionMetadataSynced, ConditionHalted, ConditionParentApplied, ConditionChildrenReady, ConditionPropagated,
	ConditionBillingExported, ConditionBillingLabelled, ConditionBudgetEnforced, ConditionConflictFree, ConditionActive}

// MostMessage bounds the message of a condition, in bytes: the operator holds the conditions of all tenants in its memory. A rule of the
// CRDs refuses longer messages of others.
const MostMessage = 4096

// SetCondition sets a condition and reports whether that changed anything. The transition time changes only when the status does. A long
// message is cut.
func SetCondition(conditions *[]metav1.Condition, generation int64, t ConditionType, status metav1.ConditionStatus, reason Reason,
	message string) bool {
	return meta.SetStatusCondition(conditions, metav1.Condition{
		Type: string(t), Status: status, ObservedGeneration: generation, Reason: string(reason), Message: cutMessage(message),
	})
}

func cutMessage(message string) string {
	const more = "…"
	if len(message) <= MostMessage {
		return message
	}
	return strings.ToValidUTF8(message[:MostMessage-len(more)], "") + more
}

// TrimConditions prepares conditions for a cache: it cuts what nobody but a user with the right to write the status can have written. Of
// the conditions of other types than the operator's, only one remains, without its texts, so that the operator sees that there is one to
// remove.
func TrimConditions(conditions []metav1.Condition) []metav1.Condition {
	var kept []metav1.Condition
	foreign := false
	for _, c := range conditions {
		switch {
		case slices.Contains(conditionTypes, ConditionType(c.Type)):
			c.Message = cutMessage(c.Message)
			kept = append(kept, c)
		case !foreign:
			foreign = true
			kept = append(kept, metav1.Condition{Type: c.Type})
		}
	}
	return kept
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
