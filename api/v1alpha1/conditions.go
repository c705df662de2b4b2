package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType is the type of a condition of Warren's kinds.
type ConditionType string

// Reason is the reason of a condition or an Event. One reason has one name wherever it appears.
type Reason string

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

// Reasons of an LNamespace.
const (
	ReasonReady             Reason = "Ready"
	ReasonCreated           Reason = "Created"
	ReasonAdopted           Reason = "Adopted"
	ReasonPending           Reason = "Pending"
	ReasonReservedName      Reason = "ReservedName"
	ReasonNamespaceConflict Reason = "NamespaceConflict"
	ReasonTerminating       Reason = "Terminating"
	ReasonChildrenExist     Reason = "ChildrenExist"
	ReasonDeleting          Reason = "Deleting"

	ReasonGranted                Reason = "Granted"
	ReasonGrantedUnvetted        Reason = "GrantedUnvetted"
	ReasonNamespaceNotReady      Reason = "NamespaceNotReady"
	ReasonConflict               Reason = "Conflict"
	ReasonGroupInUse             Reason = "GroupInUse"
	ReasonSubjectRefused         Reason = "SubjectRefused"
	ReasonConstrainedUnavailable Reason = "ConstrainedUnavailable"
	ReasonUserClusterRoleMissing Reason = "UserClusterRoleMissing"
	ReasonForbidden              Reason = "Forbidden"

	ReasonNamespaceCreated  Reason = "NamespaceCreated"
	ReasonNamespaceAdopted  Reason = "NamespaceAdopted"
	ReasonNamespaceReleased Reason = "NamespaceReleased"
	ReasonAccessGranted     Reason = "AccessGranted"
	ReasonAccessRevoked     Reason = "AccessRevoked"
	ReasonAccessConflict    Reason = "AccessConflict"
	ReasonSudoModeChanged   Reason = "SudoModeChanged"
	ReasonDriftRepaired     Reason = "DriftRepaired"
	ReasonDriftLoop         Reason = "DriftLoop"
)

// Reasons of condition BillingExported. ReasonPending is another.
const (
	ReasonExported             Reason = "Exported"
	ReasonWarehouseUnavailable Reason = "WarehouseUnavailable"
	ReasonAccessDenied         Reason = "AccessDenied"
	ReasonSchemaMismatch       Reason = "SchemaMismatch"
	ReasonInvalidData          Reason = "InvalidData"
	ReasonNotRunning           Reason = "NotRunning"
)

// Reasons of condition BillingLabelled.
const (
	ReasonLabelled          Reason = "Labelled"
	ReasonInvalidLabelValue Reason = "InvalidLabelValue"
	ReasonKeyTaken          Reason = "KeyTaken"
)

// Reasons of a SubNamespace.
const (
	ReasonNamespaceActive      Reason = "NamespaceActive"
	ReasonCreating             Reason = "Creating"
	ReasonNamespaceTerminating Reason = "NamespaceTerminating"
	ReasonParentTerminating    Reason = "ParentTerminating"
	ReasonParentNotManaged     Reason = "ParentNotManaged"
	ReasonNameTaken            Reason = "NameTaken"
	ReasonProtectedName        Reason = "ProtectedName"
	ReasonNamingPolicyViolated Reason = "NamingPolicyViolated"
	ReasonLimitExceeded        Reason = "LimitExceeded"
	ReasonCreateFailed         Reason = "CreateFailed"
	ReasonMetadataRejected     Reason = "MetadataRejected"
	ReasonSynced               Reason = "Synced"
	ReasonKeyNotAllowed        Reason = "KeyNotAllowed"
	ReasonHalted               Reason = "Halted"

	ReasonNamespaceDeleted     Reason = "NamespaceDeleted"
	ReasonNamespaceRecreated   Reason = "NamespaceRecreated"
	ReasonRemovalsHeld         Reason = "RemovalsHeld"
	ReasonInvalidConfiguration Reason = "InvalidConfiguration"
	ReasonDeletionRefused      Reason = "DeletionRefused"
)

// Reasons of a HierarchyConfiguration where nothing is wrong.
const (
	ReasonSettled      Reason = "Settled"
	ReasonNotInForest  Reason = "NotInForest"
	ReasonActive       Reason = "Active"
	ReasonApplied      Reason = "Applied"
	ReasonNotRequested Reason = "NotRequested"
	ReasonAllPresent   Reason = "AllPresent"
	ReasonNoneRequired Reason = "NoneRequired"
	ReasonInSync       Reason = "InSync"

	ReasonParentChanged  Reason = "ParentChanged"
	ReasonResumed        Reason = "Resumed"
	ReasonChildRequested Reason = "ChildRequested"
)

// Reasons for which the required children of a namespace aren't all there. ReasonNotInForest and ReasonLimitExceeded are others.
const (
	ReasonChildConflict Reason = "ChildConflict"
	ReasonChildPending  Reason = "ChildPending"
)

// Reasons for which the copies of a namespace, or of those below it, aren't what they should be. ReasonConflict is another.
const (
	ReasonRejected           Reason = "Rejected"
	ReasonWaitingForRemoval  Reason = "WaitingForRemoval"
	ReasonDescendantConflict Reason = "DescendantConflict"
)

// Reasons for which a namespace isn't placed where it was asked to be. ReasonLimitExceeded is another.
const (
	ReasonParentRefused Reason = "ParentRefused"
	ReasonLabelChanged  Reason = "LabelChanged"
	ReasonBound         Reason = "Bound"
	ReasonWouldCycle    Reason = "WouldCycle"
	ReasonIllegalParent Reason = "IllegalParent"
)

// Reasons for which a namespace is halted.
const (
	ReasonInCycle         Reason = "InCycle"
	ReasonParentMissing   Reason = "ParentMissing"
	ReasonParentReplaced  Reason = "ParentReplaced"
	ReasonInvalidLabels   Reason = "InvalidLabels"
	ReasonProtected       Reason = "Protected"
	ReasonDepthExceeded   Reason = "DepthExceeded"
	ReasonAncestorHalted  Reason = "AncestorHalted"
	ReasonTemplateMissing Reason = "TemplateMissing"
)

// Reasons of Events on sources and copies.
const (
	ReasonCopyRejected     Reason = "CopyRejected"
	ReasonInvalidSource    Reason = "InvalidSource"
	ReasonSourceExcluded   Reason = "SourceExcluded"
	ReasonConflictResolved Reason = "ConflictResolved"
	ReasonShadowed         Reason = "Shadowed"
	ReasonRailsMissing     Reason = "RailsMissing"
)

// Reasons of a ResourceDistribution. ReasonConflict, ReasonRejected and ReasonForbidden are others.
const (
	ReasonDistributed       Reason = "Distributed"
	ReasonSkipped           Reason = "Skipped"
	ReasonPartitioned       Reason = "Partitioned"
	ReasonNoTargets         Reason = "NoTargets"
	ReasonKindNotAllowed    Reason = "KindNotAllowed"
	ReasonInvalidResource   Reason = "InvalidResource"
	ReasonNotObserved       Reason = "NotObserved"
	ReasonSuspended         Reason = "Suspended"
	ReasonFailed            Reason = "Failed"
	ReasonNamespaceNotFound Reason = "NamespaceNotFound"
	ReasonNamespaceReplaced Reason = "NamespaceReplaced"
	ReasonProgressing       Reason = "Progressing"
	ReasonNoConflict        Reason = "NoConflict"
	ReasonNotChecked        Reason = "NotChecked"

	ReasonRemoved              Reason = "Removed"
	ReasonOverwrote            Reason = "Overwrote"
	ReasonDistributionConflict Reason = "DistributionConflict"
)

// Reasons for which a target of a ResourceDistribution is in conflict. ReasonDistributed is another.
const (
	ReasonUnrelated    Reason = "Unrelated"
	ReasonPropagated   Reason = "Propagated"
	ReasonControlled   Reason = "Controlled"
	ReasonNotIdentical Reason = "NotIdentical"
	ReasonTypeDiffers  Reason = "TypeDiffers"
	ReasonImmutable    Reason = "Immutable"
	ReasonBeingDeleted Reason = "BeingDeleted"
)

// Reasons of Events on the operator's Deployment.
const (
	ReasonPolicyMissing      Reason = "PolicyMissing"
	ReasonCageRefused        Reason = "CageRefused"
	ReasonCertificateRotated Reason = "CertificateRotated"
	ReasonCertificateFailed  Reason = "CertificateFailed"
)

// ReasonUserRoleChanged is the reason of Events on the ClusterRole that users hold.
const ReasonUserRoleChanged Reason = "UserRoleChanged"

// SetCondition sets a condition and says whether that changed anything. The transition time moves only when status does.
func SetCondition(conditions *[]metav1.Condition, generation int64, t ConditionType, status metav1.ConditionStatus, reason Reason, message string) bool {
	return meta.SetStatusCondition(conditions, metav1.Condition{
		Type: string(t), Status: status, ObservedGeneration: generation, Reason: string(reason), Message: message,
	})
}

// KeepConditions removes the conditions of all other types: whoever may write the status of an object of ours could add one that
// nobody would ever take away.
func KeepConditions(conditions *[]metav1.Condition, types ...ConditionType) {
	*conditions = slices.DeleteFunc(*conditions, func(c metav1.Condition) bool { return !slices.Contains(types, ConditionType(c.Type)) })
}

// FindCondition returns the condition of type t, or nil.
func FindCondition(conditions []metav1.Condition, t ConditionType) *metav1.Condition {
	return meta.FindStatusCondition(conditions, string(t))
}

// NameLost says whether the operator has reported of the SubNamespace, as it is written now, that a namespace outside of its
// tree has the name. That is final: the name is not taken up when it becomes free.
func (s *SubNamespace) NameLost() bool {
	ready := FindCondition(s.Status.Conditions, ConditionReady)
	return ready != nil && ready.Reason == string(ReasonNameTaken) && ready.ObservedGeneration == s.Generation
}

// NameLost says whether somebody else had the name of the LNamespace when it was last written. Whoever makes the LNamespace could
// otherwise lie in wait for the moment in which the name's owner deletes the namespace to make it anew.
func (l *LNamespace) NameLost() bool {
	was := FindCondition(l.Status.Conditions, ConditionNamespaceReady)
	return was != nil && was.Reason == string(ReasonNamespaceConflict) && was.ObservedGeneration == l.Generation
}
