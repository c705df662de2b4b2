package v1alpha1

// SubjectKind is the kind of a person or program that a tenant lists.
// +kubebuilder:validation:Enum=User;Group;ServiceAccount
type SubjectKind string

// The kinds of a Subject.
const (
	SubjectUser           SubjectKind = "User"
	SubjectGroup          SubjectKind = "Group"
	SubjectServiceAccount SubjectKind = "ServiceAccount"
)

// Subject is a user, a group or a service account that a tenant lists.
//
// +kubebuilder:validation:XValidation:rule="!self.name.startsWith('system:')",message="names that start with system: are reserved; a service account is kind ServiceAccount with namespace and name"
// +kubebuilder:validation:XValidation:rule="self.kind != 'User' || !self.name.startsWith('warren:')",message="user names that start with warren: are reserved"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Group' || !self.name.endsWith('-sudoers')",message="group names that end in -sudoers are reserved for sudo: list the group's members, or a group of another name"
// +kubebuilder:validation:XValidation:rule="self.name != '*' && self.name.trim() == self.name && !self.name.matches('[\\\\x00-\\\\x1f\\\\x7f]')",message="name must not be *, hold control characters, or begin or end with white space"
// +kubebuilder:validation:XValidation:rule="self.kind != 'ServiceAccount' || self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="a ServiceAccount name is a DNS subdomain"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'ServiceAccount') == (self.namespace.size() > 0)",message="namespace is required for a ServiceAccount and forbidden for a User or Group"
// +kubebuilder:validation:XValidation:rule="!self.namespace.startsWith('kube-')",message="service accounts of kube-* can't be listed"
// +kubebuilder:validation:XValidation:rule="self.namespace != 'warren-sudo'",message="service accounts of warren-sudo can't be listed"
type Subject struct {
	// kind is User, Group or ServiceAccount.
	// +required
	Kind SubjectKind `json:"kind"`

	// namespace of a ServiceAccount; empty for a User or a Group.
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name as the API server knows it: of a user or group as the authenticator says it, of a service account without its prefix.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Name string `json:"name"`
}

// String is how messages name the subject: "User bob", "ServiceAccount ci/deployer".
func (s Subject) String() string {
	if s.Kind == SubjectServiceAccount {
		return string(s.Kind) + " " + s.Namespace + "/" + s.Name
	}
	return string(s.Kind) + " " + s.Name
}
