package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LNamespaceSpec states who belongs to a tenant and what it may have.
//
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !has(self.limits.sudoers) || !has(self.sudoers) || size(self.sudoers) <= self.limits.sudoers",message="more sudoers than spec.limits.sudoers allows",fieldPath=".sudoers"
type LNamespaceSpec struct {
	// users hold the ClusterRole that the configuration names (admin by default) in every namespace of the tree.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=512
	// +optional
	Users []Subject `json:"users,omitempty"`

	// managers may get, update and patch this LNamespace.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Managers []Subject `json:"managers,omitempty"`

	// sudoers may become cluster-admin in the tree for one request, by impersonating the group <name>-sudoers.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Sudoers []Subject `json:"sudoers,omitempty"`

	// sudoRequests states who may ask for sudo for a time, and who approves. Component requests grants it.
	// +optional
	SudoRequests *SudoRequests `json:"sudoRequests,omitempty"`

	// template names a template namespace whose sources and inherited keys reach the whole tree. Cluster admins only.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Template string `json:"template,omitempty"`

	// billing states who pays for the tenant. Cluster admins only, but for its creator.
	// +optional
	Billing *Billing `json:"billing,omitempty"`

	// limits of the tree; 0 allows none. A field that is absent takes the configuration's, where absent means no limit. A lower limit
	// deletes nothing. Cluster admins only.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// allowCascadingDeletion lets the deletion of this LNamespace, or of a sub-namespace, delete what is below it.
	// +kubebuilder:default=false
	// +optional
	AllowCascadingDeletion bool `json:"allowCascadingDeletion,omitempty"`
}

// Billing states who pays.
type Billing struct {
	// costCenter in the words of the accounts department.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	CostCenter string `json:"costCenter,omitempty"`

	// owner is whom finance asks, for example a mail address.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Owner string `json:"owner,omitempty"`

	// labels go to the warehouse as they are.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 64 && size(self[k]) <= 256)",message="keys may have at most 64 characters, values 256"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// Limits bound the size of a tree, and of the copies that its own sources cause.
type Limits struct {
	// subNamespaces counts all descendants of the root.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SubNamespaces *int32 `json:"subNamespaces,omitempty"`

	// depth is the largest distance from the root, which has depth 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Depth *int32 `json:"depth,omitempty"`

	// copies is how many copies the sources in the tree may have, all together.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Copies *int32 `json:"copies,omitempty"`

	// bytes is how much these copies may hold, all together, in bytes of JSON.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Bytes *int64 `json:"bytes,omitempty"`

	// sudoers is how many subjects spec.sudoers may list; with 0 there is sudo on request only. The configuration has no value for it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Sudoers *int32 `json:"sudoers,omitempty"`

	// hard is the budget of the tree: what all its namespaces may use together. In an LNamespace, a resource that is absent takes the
	// value of the configuration. Component budgets enforces it.
	// +optional
	Hard Budget `json:"hard,omitempty"`
}

// LNamespaceStatus is what the operator reports about a tenant.
type LNamespaceStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// namespace is the name of the root namespace, once it is this LNamespace's.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// subNamespaces is the number of descendants of the root.
	// +kubebuilder:default=0
	// +optional
	SubNamespaces int32 `json:"subNamespaces"`

	// sudo describes what a sudoer types.
	// +optional
	Sudo *SudoStatus `json:"sudo,omitempty"`

	// sudoGrantedAt is when a sudoer of this LNamespace first held sudo with nobody else's binding of the group in the way. Bindings
	// of the group that others make from then on withhold nothing.
	// +optional
	SudoGrantedAt *metav1.Time `json:"sudoGrantedAt,omitempty"`

	// serviceAccounts are those of the three lists, with the namespaces that they lived in when they were listed: rights hold for
	// that namespace, and for no other of its name.
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1536
	// +optional
	ServiceAccounts []ListedServiceAccount `json:"serviceAccounts,omitempty"`

	// billing is who pays, and since when. It is absent with billing.driver none, and until the root namespace is ready.
	// +optional
	Billing *BillingStatus `json:"billing,omitempty"`

	// budget is what the namespaces of the tree use together. It is absent without spec.limits.hard, and at most 10 s old.
	// +optional
	Budget *BudgetStatus `json:"budget,omitempty"`

	// conditions are Ready, NamespaceReady and AccessReady. BillingExported is there with a billing driver, BillingLabelled if the
	// configuration has billing.namespaceLabels, and BudgetEnforced if the tree has a budget.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 4096)",message="a message may have at most 4096 characters: shorten it"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ListedServiceAccount is a service account on a list, and the namespace that was meant.
type ListedServiceAccount struct {
	// namespace of the account.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// name of the account.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name"`

	// namespaceUID names which namespace had the name when the account was listed: "sha256:" and the digest of its UID. Where it is
	// absent, there was none, or it has been in the tenant's tree since: the account gets nothing until it is off all lists and
	// listed again.
	// +optional
	NamespaceUID types.UID `json:"namespaceUID,omitempty"`
}

// BillingStatus is who pays, and since when.
type BillingStatus struct {
	// costCenter that pays.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	CostCenter string `json:"costCenter,omitempty"`

	// owner whom finance asks.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Owner string `json:"owner,omitempty"`

	// since is when it became so, by the API server's clock.
	// +required
	Since metav1.Time `json:"since"`
}

// SudoMode is the form of impersonation that carries sudo.
// +kubebuilder:validation:Enum=Legacy;Constrained
type SudoMode string

// The modes of sudo.
const (
	SudoLegacy      SudoMode = "Legacy"
	SudoConstrained SudoMode = "Constrained"
)

// SudoStatus describes how a sudoer of the tenant raises its rights.
type SudoStatus struct {
	// group that a sudoer impersonates.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Group string `json:"group"`

	// user that sudoers who are groups or service accounts impersonate.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	User string `json:"user,omitempty"`

	// mode in force.
	// +required
	Mode SudoMode `json:"mode"`

	// command is kubectl with the flags that raise the rights.
	// +kubebuilder:validation:MaxLength=2048
	// +required
	Command string `json:"command"`
}

// LNamespace is a tenant: a root namespace, who belongs to it, and what it may have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=lns,categories=warren
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="SUB",type=integer,JSONPath=`.status.subNamespaces`
// +kubebuilder:printcolumn:name="COST CENTER",type=string,JSONPath=`.spec.billing.costCenter`
// +kubebuilder:printcolumn:name="SUDO",type=string,JSONPath=`.status.sudo.mode`,priority=1
// +kubebuilder:printcolumn:name="BUDGET",type=string,JSONPath=`.status.conditions[?(@.type=="BudgetEnforced")].reason`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="an LNamespace name is a DNS label of at most 63 characters",messageExpression=`'"' + self.metadata.name + '": an LNamespace name is a DNS label of at most 63 characters: use lowercase letters, digits and -, with a letter or digit at both ends'`,fieldPath=".metadata.name"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="an LNamespace name is a DNS label of at most 63 characters",messageExpression=`'"' + self.metadata.name + '" is too long: an LNamespace name is a DNS label of at most 63 characters; choose a shorter one'`,fieldPath=".metadata.name"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'default' && !self.metadata.name.startsWith('kube-')",message="default and kube-* are reserved names",messageExpression=`'"' + self.metadata.name + '": default and kube-* are reserved names: choose another'`,fieldPath=".metadata.name"
type LNamespace struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec states who belongs to the tenant and what it may have.
	// +kubebuilder:default={}
	// +optional
	Spec LNamespaceSpec `json:"spec,omitempty"`

	// status is what the operator reports.
	// +optional
	Status LNamespaceStatus `json:"status,omitempty"`
}

// LNamespaceList is a list of LNamespaces.
//
// +kubebuilder:object:root=true
type LNamespaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LNamespace `json:"items"`
}
