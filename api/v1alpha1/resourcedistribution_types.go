package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NamespaceName is the name of a namespace.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type NamespaceName string

// NamespaceReference names one namespace.
type NamespaceReference struct {
	// name of the namespace; it need not exist yet.
	// +required
	Name NamespaceName `json:"name"`
}

// ConflictPolicy describes what happens where an object of that kind and name stands already.
// +kubebuilder:validation:Enum=Fail;Skip;AdoptIdentical;Overwrite
type ConflictPolicy string

// The conflict policies.
const (
	ConflictFail           ConflictPolicy = "Fail"
	ConflictSkip           ConflictPolicy = "Skip"
	ConflictAdoptIdentical ConflictPolicy = "AdoptIdentical"
	ConflictOverwrite      ConflictPolicy = "Overwrite"
)

// DriftPolicy describes what happens to a copy that another client has changed.
// +kubebuilder:validation:Enum=Ignore;Revert
type DriftPolicy string

// The drift policies.
const (
	DriftIgnore DriftPolicy = "Ignore"
	DriftRevert DriftPolicy = "Revert"
)

// DeletionPolicy describes what happens to a copy whose namespace is a target no longer, or whose distribution is deleted.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

// The deletion policies.
const (
	DeletionDelete DeletionPolicy = "Delete"
	DeletionOrphan DeletionPolicy = "Orphan"
)

// DistributionTargets states which namespaces get a copy: those that meet each option that is set. Protected and terminating namespaces
// never do.
// +kubebuilder:validation:XValidation:rule="!(has(self.allNamespaces) && self.allNamespaces) || !(has(self.includedNamespaces) || has(self.namespaceLabelSelector) || has(self.trees))",message="allNamespaces can't be combined with includedNamespaces, namespaceLabelSelector or trees"
// +kubebuilder:validation:XValidation:rule="!has(self.allNamespaces) || self.allNamespaces || has(self.includedNamespaces) || has(self.namespaceLabelSelector) || has(self.trees)",message="no target: set includedNamespaces, namespaceLabelSelector or trees"
type DistributionTargets struct {
	// allNamespaces is true where the default, all namespaces, is written out.
	// +optional
	AllNamespaces *bool `json:"allNamespaces,omitempty"`

	// includedNamespaces get a copy. A name means the namespace that has it when targets is written. A name that doesn't exist is
	// reported, and served when a cluster administrator makes the namespace.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	// +optional
	IncludedNamespaces []NamespaceReference `json:"includedNamespaces,omitempty"`

	// excludedNamespaces never get a copy, whatever the other options say.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	// +optional
	ExcludedNamespaces []NamespaceReference `json:"excludedNamespaces,omitempty"`

	// namespaceLabelSelector selects namespaces by their labels. An empty one restricts nothing.
	// +optional
	NamespaceLabelSelector *metav1.LabelSelector `json:"namespaceLabelSelector,omitempty"`

	// trees are namespaces that get a copy with all their descendants in the forest, now and later. A name means the namespace that has it
	// when targets is written, as in includedNamespaces.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Trees []NamespaceName `json:"trees,omitempty"`

	// excludedTrees are namespaces that never get a copy, nor do their descendants in the forest, now and later, whatever the other
	// options say.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +optional
	ExcludedTrees []NamespaceName `json:"excludedTrees,omitempty"`
}

// ResourceDistributionSpec holds one object and states which namespaces get a copy of it.
// +kubebuilder:validation:XValidation:rule="self.resource.apiVersion == oldSelf.resource.apiVersion && self.resource.kind == oldSelf.resource.kind && has(self.resource.metadata.name) == has(oldSelf.resource.metadata.name) && (!has(self.resource.metadata.name) || self.resource.metadata.name == oldSelf.resource.metadata.name)",message="spec.resource: apiVersion, kind and metadata.name are immutable; create another ResourceDistribution"
type ResourceDistributionSpec struct {
	// resource is the object that is copied, without a namespace.
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	// +required
	Resource runtime.RawExtension `json:"resource"`

	// targets are the namespaces that get a copy; {} stands for all.
	// +kubebuilder:default={}
	// +optional
	Targets DistributionTargets `json:"targets,omitempty"`

	// conflictPolicy describes what happens where another object is in the way.
	// +kubebuilder:default=Fail
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`

	// driftPolicy describes what happens to a copy that another client has changed.
	// +kubebuilder:default=Ignore
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// deletionPolicy describes what happens to a copy that nothing wants any more.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// suspend stops all writes to namespaces; status.plan describes what would be written.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ConflictingNamespace is a target in which another object is in the way.
type ConflictingNamespace struct {
	// name of the namespace.
	// +required
	Name string `json:"name"`
	// reason of the conflict.
	// +required
	Reason Reason `json:"reason"`
	// by names who holds the place, where that is known.
	// +optional
	By string `json:"by,omitempty"`
}

// FailedNamespace is a namespace in which the copy could not be written or, if it is no target any more, not be removed.
type FailedNamespace struct {
	// name of the namespace.
	// +required
	Name string `json:"name"`
	// reason of the failure.
	// +required
	Reason Reason `json:"reason"`
	// message states why the API server refused the copy, in at most 256 bytes. Of invalid fields it has only the paths, because their
	// values may be secret. It may also have the operator's advice.
	// +optional
	Message string `json:"message,omitempty"`
}

// PlannedNamespaces are those in which one thing would be done.
type PlannedNamespaces struct {
	// count is how many there are.
	// +required
	Count int32 `json:"count"`
	// namespaces are the first 50 names.
	// +listType=atomic
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
}

// DistributionPlan is what would be done were the ResourceDistribution not suspended.
type DistributionPlan struct {
	// create is where no object stands. A copy would be created there, unless a conflict elsewhere holds back all new copies.
	// +required
	Create PlannedNamespaces `json:"create"`
	// update is where a copy would be updated.
	// +required
	Update PlannedNamespaces `json:"update"`
	// adopt is where an object would become a copy.
	// +required
	Adopt PlannedNamespaces `json:"adopt"`
	// overwrite is where an object would be overwritten with a copy.
	// +required
	Overwrite PlannedNamespaces `json:"overwrite"`
	// delete is where a copy would be deleted.
	// +required
	Delete PlannedNamespaces `json:"delete"`
	// unchanged is where the copy is current.
	// +required
	Unchanged PlannedNamespaces `json:"unchanged"`
	// conflict is where another object would stay.
	// +required
	Conflict PlannedNamespaces `json:"conflict"`
}

// NamedNamespaces records which namespaces the names in spec.targets mean.
type NamedNamespaces struct {
	// targets is a hash of the spec.targets that this speaks of.
	// +required
	Targets string `json:"targets"`
	// uids has an entry for each name in includedNamespaces and trees, in alphabetical order: the first 48 bits of the SHA-256 of
	// the namespace's UID in base64, or "-" while no namespace of that name is meant. If one has the name but is not meant, the same
	// of that one follows the "-".
	// +listType=atomic
	// +required
	UIDs []string `json:"uids"`
	// written is when spec.targets was written. Later changes of other fields of the spec leave it as it is.
	// +optional
	Written *metav1.Time `json:"written,omitempty"`
}

// ResourceDistributionStatus is what the operator reports. Its lists are cut, so that it stays below 64 KiB.
type ResourceDistributionStatus struct {
	// observedGeneration is the generation that the rest speaks of; -1 until the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`

	// resourceHash is the content part of the annotation source-hash of a current copy.
	// +optional
	ResourceHash string `json:"resourceHash,omitempty"`

	// targets is the number of namespaces that are to have a copy: the sum of the five numbers below.
	// +optional
	Targets int32 `json:"targets"`
	// current copies are what spec.resource says.
	// +optional
	Current int32 `json:"current"`
	// outdated copies are ours, and not written yet.
	// +optional
	Outdated int32 `json:"outdated"`
	// missing copies do not exist yet.
	// +optional
	Missing int32 `json:"missing"`
	// conflicts are targets in which another object is in the way.
	// +optional
	Conflicts int32 `json:"conflicts"`
	// failed copies were refused by the API server.
	// +optional
	Failed int32 `json:"failed"`

	// conflictingNamespaces are the first 100.
	// +listType=atomic
	// +optional
	ConflictingNamespaces []ConflictingNamespace `json:"conflictingNamespaces,omitempty"`

	// failedNamespaces are the first 20.
	// +listType=atomic
	// +optional
	FailedNamespaces []FailedNamespace `json:"failedNamespaces,omitempty"`

	// notFound are the first 20 names in includedNamespaces and trees of which no namespace exists.
	// +listType=atomic
	// +optional
	NotFound []string `json:"notFound,omitempty"`

	// replaced are the first 20 of the names in includedNamespaces and trees that now belong to another namespace than the intended one.
	// +listType=atomic
	// +optional
	Replaced []string `json:"replaced,omitempty"`

	// named records which namespaces the names in includedNamespaces and trees mean.
	// +optional
	Named *NamedNamespaces `json:"named,omitempty"`

	// deletionPolicy is the one that is in force on every copy.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// admitted is what the check for conflicts before the first copy has passed for.
	// +optional
	Admitted string `json:"admitted,omitempty"`

	// plan stands here only while the ResourceDistribution is suspended.
	// +optional
	Plan *DistributionPlan `json:"plan,omitempty"`

	// conditions are Ready, ConflictFree, Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 4096)",message="a message may have at most 4096 characters: shorten it"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ResourceDistribution holds one Secret or ConfigMap, of which every chosen namespace, present or future, has a copy.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rdist,categories=warren
// +kubebuilder:printcolumn:name="KIND",type=string,JSONPath=`.spec.resource.kind`
// +kubebuilder:printcolumn:name="RESOURCE",type=string,JSONPath=`.spec.resource.metadata.name`
// +kubebuilder:printcolumn:name="TARGETS",type=integer,JSONPath=`.status.targets`
// +kubebuilder:printcolumn:name="CURRENT",type=integer,JSONPath=`.status.current`
// +kubebuilder:printcolumn:name="CONFLICTS",type=integer,JSONPath=`.status.conflicts`
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="MISSING",type=integer,JSONPath=`.status.missing`,priority=1
// +kubebuilder:printcolumn:name="OUTDATED",type=integer,JSONPath=`.status.outdated`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="must be no more than 63 characters",fieldPath=".metadata.name"
type ResourceDistribution struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the object to copy, and where.
	// +required
	Spec ResourceDistributionSpec `json:"spec"`

	// status is what the operator reports. Its lists are cut, so that it stays below 64 KiB.
	// +default={"observedGeneration": -1}
	// +optional
	Status ResourceDistributionStatus `json:"status,omitempty"`
}

// ResourceDistributionList is a list of ResourceDistributions.
//
// +kubebuilder:object:root=true
type ResourceDistributionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceDistribution `json:"items"`
}
