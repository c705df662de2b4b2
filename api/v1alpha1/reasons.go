package v1alpha1

// Reason is the reason of a condition or an Event. One reason has one name wherever it appears.
//
// The comment of each constant has the form "where: meaning". `make docs` writes docs/reference/reasons.md from it.
type Reason string

// Reasons of an LNamespace.
const (
	// Condition Ready: the namespace and all rights are as the spec says.
	ReasonReady Reason = "Ready"
	// Condition NamespaceReady: the operator created the root namespace for this LNamespace.
	ReasonCreated Reason = "Created"
	// Condition NamespaceReady, Event on a ResourceDistribution: the object existed before and was taken over: a namespace by the mark
	// `adopt`, another object by `conflictPolicy`.
	ReasonAdopted Reason = "Adopted"
	// Conditions NamespaceReady, ParentApplied, Propagated, BillingExported: the work is not done yet. Condition Active of a SudoRequest:
	// approvals are missing; the message says how many, and whose. On a HierarchyConfiguration, the API
	// server may also refuse the place that was requested; the message then ends with the command that helps.
	ReasonPending Reason = "Pending"
	// Condition NamespaceReady, Event; condition Ready of a SubNamespace: `tenants.reservedNames` reserves the name. Choose another name.
	ReasonReservedName Reason = "ReservedName"
	// Condition NamespaceReady, Event: a namespace of that name exists and does not belong to this LNamespace. The message has the command
	// by which a cluster admin hands it over.
	ReasonNamespaceConflict Reason = "NamespaceConflict"
	// Condition NamespaceReady: the namespace is being deleted. The message describes what still holds it.
	ReasonTerminating Reason = "Terminating"
	// Condition NamespaceReady, Event: the LNamespace is being deleted, but has sub-namespaces that may not be deleted with it. Until they
	// are deleted or the deletion may cascade, everything stays as it is, rights included.
	ReasonChildrenExist Reason = "ChildrenExist"
	// Condition NamespaceReady: the operator is revoking rights or deleting the namespace, or the namespace is protected and is therefore
	// not deleted. The message states which.
	ReasonDeleting Reason = "Deleting"

	// Condition AccessReady: all rights are granted. Condition Active of a SudoRequest: the requester has sudo until endTime.
	ReasonGranted Reason = "Granted"
	// Condition AccessReady: all rights are granted, but the ClusterRole of users holds dangerous rights. See `kubectl warren vet`.
	ReasonGrantedUnvetted Reason = "GrantedUnvetted"
	// Condition AccessReady: no right is granted until the namespace is ready.
	ReasonNamespaceNotReady Reason = "NamespaceNotReady"
	// Conditions AccessReady, TemplateReady, Propagated, ConflictFree, Ready, Event on a source: another object has the name of one that the
	// operator must write: an access object, a copy, or a distributed copy. Condition Ready of a SubNamespace: another namespace of the same
	// tree has the name; the operator creates the namespace when the name is free.
	ReasonConflict Reason = "Conflict"
	// Condition AccessReady, Events: bindings that are not the operator's named the group of sudoers, or user `warren:sudo:<tenant>`, before
	// the first grant. See [the two forms of sudo](../guides/sudo-modes.md). Condition Active of a SudoRequest: a RoleBinding of an earlier
	// LNamespace of the same name binds the temporary sudoer.
	ReasonGroupInUse Reason = "GroupInUse"
	// Condition AccessReady, Event: one subject of a list gets no rights; all others do. The message names it and the rule.
	ReasonSubjectRefused Reason = "SubjectRefused"
	// Condition AccessReady: the ClusterRole that `access.userClusterRole` names does not exist.
	ReasonUserClusterRoleMissing Reason = "UserClusterRoleMissing"
	// Conditions AccessReady, BudgetEnforced, Ready of a HierarchicalResourceQuota, a failure of a ResourceDistribution: the API server
	// refuses a request of the operator, because the operator lacks a right.
	ReasonForbidden Reason = "Forbidden"

	// Condition AccessReady: controller `access` is switched off, so the operator neither grants nor revokes rights of tenants. Condition
	// Ready does not wait for it.
	ReasonDisabled Reason = "Disabled"

	// Event on an LNamespace: the operator created the root namespace.
	ReasonNamespaceCreated Reason = "NamespaceCreated"
	// Event on an LNamespace: the operator took over an existing namespace as the root.
	ReasonNamespaceAdopted Reason = "NamespaceAdopted"
	// Event: the namespace stays although its object is deleted. Condition ParentApplied: the namespace has left the tree, because nobody on
	// the tenant's lists still holds it. To place it again, delete the HierarchyConfiguration and create it anew.
	ReasonNamespaceReleased Reason = "NamespaceReleased"
	// Event on an LNamespace: rights were granted.
	ReasonAccessGranted Reason = "AccessGranted"
	// Event on an LNamespace: rights were revoked.
	ReasonAccessRevoked Reason = "AccessRevoked"
	// Event on an LNamespace, or on the binding: another object has the name of an access object. So rights could not be granted, or it
	// may grant rights that no list asks for.
	ReasonAccessConflict Reason = "AccessConflict"
	// Event on an LNamespace: the tenant's sudo now has the other mode.
	ReasonSudoModeChanged Reason = "SudoModeChanged"
	// Event on LNamespaces, and on copies of a source: the operator restored what another user had changed.
	ReasonDriftRepaired Reason = "DriftRepaired"
	// Event on copies of a source, ResourceDistributions and generated objects: another program changes an object again and again. The
	// operator now repairs it less often.
	ReasonDriftLoop Reason = "DriftLoop"
)

// Reasons of condition BillingExported. ReasonPending is another.
const (
	// Condition BillingExported: the warehouse has every change of the tenant.
	ReasonExported Reason = "Exported"
	// Condition BillingExported: the warehouse does not answer, or its quota is used up. Changes wait.
	ReasonWarehouseUnavailable Reason = "WarehouseUnavailable"
	// Condition BillingExported: the warehouse refuses the exporter's account. Changes wait.
	ReasonAccessDenied Reason = "AccessDenied"
	// Condition BillingExported: the table in the warehouse differs from the one that the exporter needs.
	ReasonSchemaMismatch Reason = "SchemaMismatch"
	// Condition BillingExported: the warehouse refuses rows of this tenant, and of no other.
	ReasonInvalidData Reason = "InvalidData"
	// Condition BillingExported: a driver is configured, but the operator sees no billing exporter that runs.
	ReasonNotRunning Reason = "NotRunning"
)

// Reasons of condition BillingLabelled.
const (
	// Condition BillingLabelled: the namespaces of the tree have the labels of `billing.namespaceLabels`.
	ReasonLabelled Reason = "Labelled"
	// Condition BillingLabelled, Event: a value of `spec.billing` is not valid as the value of a label, so no namespace has it.
	ReasonInvalidLabelValue Reason = "InvalidLabelValue"
	// Condition BillingLabelled, Event: on the namespaces that the message names, the label already has another value. The operator does not
	// change it.
	ReasonKeyTaken Reason = "KeyTaken"
)

// Reasons of condition BudgetEnforced, and of a HierarchicalResourceQuota.
const (
	// Conditions BudgetEnforced, Ready of a HierarchicalResourceQuota: no more is used than the budget allows, and no more can be.
	ReasonEnforced Reason = "Enforced"
	// Condition BudgetEnforced: component `budgets` is not installed, so nothing limits the tree.
	ReasonNotInstalled Reason = "NotInstalled"
	// Conditions BudgetEnforced, Ready of a HierarchicalResourceQuota: more is used than the budget allows, because it was lowered, or
	// namespaces joined with objects. Nothing is deleted, and nothing new is admitted.
	ReasonExceeded Reason = "Exceeded"
	// Conditions BudgetEnforced, Ready of a HierarchicalResourceQuota: Kubernetes has not counted the ResourceQuota of a namespace for 10 s.
	// Nobody gets new rights there before. Or the message names resources that no ResourceQuota can limit: all others of the budget count.
	ReasonNotCounted Reason = "NotCounted"
	// Condition Ready of a HierarchicalResourceQuota: the namespace is in no tree, so the object limits nothing.
	ReasonNotInTree Reason = "NotInTree"
)

// Reasons of a SubNamespace.
const (
	// Condition Ready of a SubNamespace: the namespace exists and belongs to this SubNamespace.
	ReasonNamespaceActive Reason = "NamespaceActive"
	// Condition Ready of a SubNamespace: the operator is creating the namespace.
	ReasonCreating Reason = "Creating"
	// Condition Ready of a SubNamespace: a namespace of that name is being deleted. The SubNamespace waits.
	ReasonNamespaceTerminating Reason = "NamespaceTerminating"
	// Conditions Ready, Halted: the parent namespace is being deleted.
	ReasonParentTerminating Reason = "ParentTerminating"
	// Conditions Ready, Halted: the parent is neither a root nor a sub-namespace, or it is halted.
	ReasonParentNotManaged Reason = "ParentNotManaged"
	// Condition Ready of a SubNamespace: a namespace outside this tree has the name, or had it when the SubNamespace was written. This is
	// final. Choose another name, or write the SubNamespace again when the name is free.
	ReasonNameTaken Reason = "NameTaken"
	// Condition Ready of a SubNamespace: the namespace of that name is protected, by its name or by its label.
	ReasonProtectedName Reason = "ProtectedName"
	// Condition Ready of a SubNamespace: the name breaks a rule of `subNamespaces.namingPolicies`.
	ReasonNamingPolicyViolated Reason = "NamingPolicyViolated"
	// Conditions Ready, NamespaceReady, ChildrenReady, ParentApplied, Propagated, Events on sources and on an LNamespace: a limit would be
	// exceeded: sub-namespaces, depth, copies or bytes of the tenant, or `tenants.maxPerCreator`. A namespace has
	// more than 8 HierarchicalResourceQuotas.
	ReasonLimitExceeded Reason = "LimitExceeded"
	// Conditions Ready, NamespaceReady, Event on an LNamespace: the API server refuses to create the namespace. The operator tries again, at
	// first soon, in the end every 5 minutes, and at once when the spec changes.
	ReasonCreateFailed Reason = "CreateFailed"
	// Conditions MetadataSynced, Ready, Stalled, Event on a SubNamespace or a generated object: the API server refuses the labels or
	// annotations of the namespace, or the label `propagate` of a generated object. The operator tries again after 1 second, in the end
	// every 5 minutes, and at once when the namespace changes. For the label `propagate`, `propagation.retry` sets these times.
	ReasonMetadataRejected Reason = "MetadataRejected"
	// Condition MetadataSynced: the namespace has the labels and annotations of its spec and of its ancestors.
	ReasonSynced Reason = "Synced"
	// Condition MetadataSynced: the configuration does not allow some keys of the spec. The message names them.
	ReasonKeyNotAllowed Reason = "KeyNotAllowed"
	// Condition MetadataSynced: the namespace is bound, but the SubNamespace that owns it does not exist. Create the SubNamespace again in
	// the parent: it takes the namespace over.
	ReasonSubNamespaceMissing Reason = "SubNamespaceMissing"
	// Condition MetadataSynced, Event on the HierarchyConfiguration: the namespace is halted, so nothing is written to it. The Event has
	// the cause.
	ReasonHalted Reason = "Halted"

	// Event on a SubNamespace: the namespace is being deleted.
	ReasonNamespaceDeleted Reason = "NamespaceDeleted"
	// Event on a SubNamespace: the namespace had been deleted, and the operator created it again.
	ReasonNamespaceRecreated Reason = "NamespaceRecreated"
	// Event on a SubNamespace: the namespace is not deleted. It is protected, it has sub-namespaces that may not be deleted with it, or the
	// API server refuses the deletion.
	ReasonDeletionRefused Reason = "DeletionRefused"
)

// Reasons of a HierarchyConfiguration where nothing is wrong.
const (
	// Condition Ready of a HierarchyConfiguration: the namespace has everything that its ancestors and this object ask for.
	ReasonSettled Reason = "Settled"
	// Conditions Ready, ChildrenReady: the namespace is in no tree.
	ReasonNotInForest Reason = "NotInForest"
	// Condition Halted is False: every ancestor up to the root is sound.
	ReasonActive Reason = "Active"
	// Condition ParentApplied: the namespace has the parent that `spec.parent` names, or none if `spec.parent` is `""`.
	ReasonApplied Reason = "Applied"
	// Condition ParentApplied: `spec.parent` is absent.
	ReasonNotRequested Reason = "NotRequested"
	// Condition ChildrenReady: every required child exists.
	ReasonAllPresent Reason = "AllPresent"
	// Condition ChildrenReady: no child is required.
	ReasonNoneRequired Reason = "NoneRequired"
	// Condition Propagated: no problem is reported for sources and copies in this namespace, and no conflict for copies below. A template
	// reports only conflicts of its own sources below.
	ReasonInSync Reason = "InSync"

	// Event on a HierarchyConfiguration: the operator moved the namespace to the place that `spec.parent` asks for.
	ReasonParentChanged Reason = "ParentChanged"
	// Event on a HierarchyConfiguration: the namespace is no longer halted.
	ReasonResumed Reason = "Resumed"
	// Event on a HierarchyConfiguration: the operator created a SubNamespace for a required child.
	ReasonChildRequested Reason = "ChildRequested"
)

// Reasons for which the required children of a namespace aren't all there. ReasonNotInForest and ReasonLimitExceeded are others.
const (
	// Condition ChildrenReady: another namespace has the name of a required child, or another namespace waits for a parent of that name.
	ReasonChildConflict Reason = "ChildConflict"
	// Condition ChildrenReady: the child is being created, or it waits until a namespace of its name is deleted.
	ReasonChildPending Reason = "ChildPending"
)

// Reasons for which the copies of a namespace, or of those below it, aren't what they should be. ReasonConflict is another.
const (
	// Conditions Propagated and TemplateReady, a failure of a ResourceDistribution: the API server, or the operator itself, refuses a copy.
	// The message has the reason.
	ReasonRejected Reason = "Rejected"
	// Condition Propagated: new copies wait until the copies of the old place are deleted.
	ReasonWaitingForRemoval Reason = "WaitingForRemoval"
	// Condition Propagated: a copy in a namespace below, or in one that this template reaches, is in conflict. It does not make condition
	// Ready False.
	ReasonDescendantConflict Reason = "DescendantConflict"
)

// Reasons for which a namespace isn't placed where it was asked to be. ReasonLimitExceeded is another.
const (
	// Event on a HierarchyConfiguration: `spec.parent` is not carried out. The message is that of condition ParentApplied.
	ReasonParentRefused Reason = "ParentRefused"
	// Condition ParentApplied: a cluster admin changed the label `parent` after the request was carried out. The label is valid.
	ReasonLabelChanged Reason = "LabelChanged"
	// Condition ParentApplied: a SubNamespace owns this namespace and decides its place.
	ReasonBound Reason = "Bound"
	// Condition ParentApplied: the requested place would make a cycle.
	ReasonWouldCycle Reason = "WouldCycle"
	// Condition ParentApplied: the namespace or its parent is protected, a template, or being deleted; or the parent is, or may be, a later
	// namespace of the same name.
	ReasonIllegalParent Reason = "IllegalParent"
)

// Reasons for which a namespace is halted.
const (
	// Condition Halted: the namespace is its own ancestor.
	ReasonInCycle Reason = "InCycle"
	// Condition Halted: the parent does not exist.
	ReasonParentMissing Reason = "ParentMissing"
	// Condition Halted: a later namespace has the name of the parent, at another place in the forest.
	ReasonParentReplaced Reason = "ParentReplaced"
	// Condition Halted: the labels `type` and `parent` contradict each other, or a value of `type`, `parent` or `template` is not valid.
	ReasonInvalidLabels Reason = "InvalidLabels"
	// Condition Halted: the namespace is protected.
	ReasonProtected Reason = "Protected"
	// Condition Halted: the namespace is more than 128 levels below the root.
	ReasonDepthExceeded Reason = "DepthExceeded"
	// Condition Halted: an ancestor is halted. The message names it.
	ReasonAncestorHalted Reason = "AncestorHalted"
)

// Reasons about templates.
const (
	// Conditions MetadataSynced and TemplateReady, Event: the template does not exist, ends, is in a cycle, or is not a template. Nothing is
	// inherited from it until that is corrected. What was inherited stays. An LNamespace is not Ready meanwhile.
	ReasonTemplateMissing Reason = "TemplateMissing"
	// Condition TemplateReady, Event: the template has a ResourceQuota, LimitRange or NetworkPolicy with the label `propagate`, but
	// `propagation.kinds` lacks the kind, or has it in mode `Remove`. So it limits nothing in the tenant, which is not Ready.
	ReasonKindNotPropagated Reason = "KindNotPropagated"
)

// Reasons of Events on sources and copies.
const (
	// Event on the source: the API server, or the operator itself, refuses a copy.
	ReasonCopyRejected Reason = "CopyRejected"
	// Event on the source; condition Propagated of its namespace: the annotation `select` or the label `propagate` is not valid. Existing
	// copies stay as they are.
	ReasonInvalidSource Reason = "InvalidSource"
	// Event on the source: the object is never propagated, by a rule of Warren or of the configuration.
	ReasonSourceExcluded Reason = "SourceExcluded"
	// Event on the source or the ResourceDistribution: the object that was in the way of a copy is deleted.
	ReasonConflictResolved Reason = "ConflictResolved"
	// Event on the source: a namespace nearer to the root has a source of the same kind and name. Copies come from that one.
	ReasonShadowed Reason = "Shadowed"
	// Event on the RoleBinding that is the source: its copies granted rights in a namespace that still lacked copies of other kinds after 10
	// seconds.
	ReasonRailsMissing Reason = "RailsMissing"
)

// Reasons of a ResourceDistribution. ReasonConflict, ReasonRejected and ReasonForbidden are others.
const (
	// Condition Ready is True; also the reason of a target in conflict: every target has its copy. Of a conflict: the object is a copy of
	// another ResourceDistribution.
	ReasonDistributed Reason = "Distributed"
	// Condition Ready is True: every target has its copy, except those in conflict, which `conflictPolicy: Skip` leaves out.
	ReasonSkipped Reason = "Skipped"
	// Condition Ready is True: `spec.targets` selects no namespace.
	ReasonNoTargets Reason = "NoTargets"
	// Condition Ready is False: `distribution.kinds` does not have the kind.
	ReasonKindNotAllowed Reason = "KindNotAllowed"
	// Condition Ready is False: `spec.resource` is not valid, or the configuration does not allow `spec.conflictPolicy`.
	ReasonInvalidResource Reason = "InvalidResource"
	// Conditions Ready, Propagated, BudgetEnforced: the operator cannot list or watch what it needs. The message describes what is
	// missing, and where. While BudgetEnforced has this reason, new namespaces get no rights and no copies.
	ReasonNotObserved Reason = "NotObserved"
	// Condition Ready is False: `spec.suspend` is true. `status.plan` has what would be written.
	ReasonSuspended Reason = "Suspended"
	// Condition Ready is False: copies could not be written or removed. `status.failedNamespaces` has the answers.
	ReasonFailed Reason = "Failed"
	// Condition Ready is False: a namespace that `spec.targets` names does not exist.
	ReasonNamespaceNotFound Reason = "NamespaceNotFound"
	// Condition Ready is False, Event: a later namespace has a name of `spec.targets`, and gets no copy.
	ReasonNamespaceReplaced Reason = "NamespaceReplaced"
	// Condition Ready is False: copies are still to be written, deleted or handed back.
	ReasonProgressing Reason = "Progressing"
	// Condition ConflictFree: no other object is in the way.
	ReasonNoConflict Reason = "NoConflict"
	// Condition ConflictFree: the operator cannot check the targets now. Condition Ready has the cause.
	ReasonNotChecked Reason = "NotChecked"

	// Event on a ResourceDistribution: copies were deleted, or handed back.
	ReasonRemoved Reason = "Removed"
	// Event on a ResourceDistribution: it overwrote an object.
	ReasonOverwrote Reason = "Overwrote"
	// Event on the object in the way: a ResourceDistribution has no copy here, because of this object.
	ReasonDistributionConflict Reason = "DistributionConflict"
)

// Reasons for which a target of a ResourceDistribution is in conflict. ReasonDistributed is another.
const (
	// A target in conflict: the operator did not write the object.
	ReasonUnrelated Reason = "Unrelated"
	// A target in conflict: the object is a source or a copy of propagation.
	ReasonPropagated Reason = "Propagated"
	// A target in conflict: a controller owns the object.
	ReasonControlled Reason = "Controlled"
	// A target in conflict: under `conflictPolicy: AdoptIdentical`, the object differs from `spec.resource`.
	ReasonNotIdentical Reason = "NotIdentical"
	// A target in conflict: the type of the Secret differs.
	ReasonTypeDiffers Reason = "TypeDiffers"
	// A target in conflict: the object is immutable.
	ReasonImmutable Reason = "Immutable"
	// A target in conflict: the object is being deleted.
	ReasonBeingDeleted Reason = "BeingDeleted"
)

// Reasons of Events on the operator's Deployment.
const (
	// Event on the operator's Deployment: an admission policy is not fully in force, or may not be read. Condition Active of a SudoRequest:
	// policy `sudo-requests` or `temporary-sudo` is not in force, so nothing is granted.
	ReasonPolicyMissing Reason = "PolicyMissing"
	// Event on the operator's Deployment: a policy that restricts the operator refused one of its writes.
	ReasonCageRefused Reason = "CageRefused"
	// Event on the operator's Deployment: the certificate of the webhooks was replaced.
	ReasonCertificateRotated Reason = "CertificateRotated"
	// Event on the operator's Deployment: the certificate of the webhooks could not be replaced.
	ReasonCertificateFailed Reason = "CertificateFailed"
	// Event on the operator's Deployment: a changed configuration file would delete many copies, or would leave copies that no user can
	// change. Until the file has the line `acceptRemovals` of the message, a process with this file is not ready and changes nothing.
	ReasonRemovalsHeld Reason = "RemovalsHeld"
	// Event on the operator's Deployment: the configuration file is not valid. A process with this file exits.
	ReasonInvalidConfiguration Reason = "InvalidConfiguration"
)

// Reasons of Events on the ClusterRole of users.
const (
	// Event on the ClusterRole of users: the findings about this ClusterRole have changed. See `kubectl warren vet`.
	ReasonUserRoleChanged Reason = "UserRoleChanged"
)
