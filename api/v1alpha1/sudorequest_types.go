package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SudoDuration is how long sudo on request lasts, such as 1h30m.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}[hms])+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="duration is between 1m and 24h, such as 1h30m"
type SudoDuration string

// Value returns the duration; 0 if the text is none.
func (d SudoDuration) Value() time.Duration {
	value, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return value
}

// SudoRequests states who of a tenant may ask for sudo, and who approves.
type SudoRequests struct {
	// eligible are those who may ask for sudo.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.kind != 'ServiceAccount')",message="eligible and approvers are Users and Groups"
	// +optional
	Eligible []Subject `json:"eligible,omitempty"`

	// approvers are those who approve; where there are none, the managers. Managers may always deny and end.
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.kind != 'ServiceAccount')",message="eligible and approvers are Users and Groups"
	// +optional
	Approvers []Subject `json:"approvers,omitempty"`

	// approvals is how many people other than the requester must approve.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4
	// +kubebuilder:default=1
	// +optional
	Approvals int32 `json:"approvals,omitempty"`

	// maxDuration is the longest time that one may ask for.
	// +kubebuilder:default="4h"
	// +optional
	MaxDuration SudoDuration `json:"maxDuration,omitempty"`

	// breakGlass lets those who are eligible do without approval. They must say so in the request, and a Warning follows.
	// +kubebuilder:default=false
	// +optional
	BreakGlass bool `json:"breakGlass,omitempty"`
}

// SudoVerdict is what somebody decides on a request.
// +kubebuilder:validation:Enum=Approve;Deny;End
type SudoVerdict string

// The verdicts on a SudoRequest.
const (
	SudoApprove SudoVerdict = "Approve"
	SudoDeny    SudoVerdict = "Deny"
	SudoEnd     SudoVerdict = "End"
)

// SudoDecision is what one person decided on a request.
type SudoDecision struct {
	// user who decides, as the API server names them.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	User string `json:"user"`

	// group of the user by which they may decide.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Group string `json:"group,omitempty"`

	// verdict is Approve, Deny or End.
	// +required
	Verdict SudoVerdict `json:"verdict"`

	// comment for the record.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}]')",message="comment is one line without control characters"
	// +optional
	Comment string `json:"comment,omitempty"`
}

// SudoRequestSpec states who asks for sudo, why and for how long, and what was decided.
//
// +kubebuilder:validation:XValidation:rule="self.user == oldSelf.user && has(self.group) == has(oldSelf.group) && (!has(self.group) || self.group == oldSelf.group) && self.reason == oldSelf.reason && self.duration == oldSelf.duration && self.breakGlass == oldSelf.breakGlass",message="a request can't be changed; end it and make another"
// +kubebuilder:validation:XValidation:rule="oldSelf.decisions.all(d, d in self.decisions)",message="a decision can't be changed or taken back; add another"
type SudoRequestSpec struct {
	// user who asks, as the API server names them.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	User string `json:"user"`

	// group of the user by which they are eligible.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Group string `json:"group,omitempty"`

	// reason for the approvers and for the record.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}]')",message="reason is one line without control characters"
	// +required
	Reason string `json:"reason"`

	// duration of sudo, from the grant on.
	// +required
	Duration SudoDuration `json:"duration"`

	// breakGlass asks for sudo without approval, where the tenant allows that.
	// +kubebuilder:default=false
	// +optional
	BreakGlass bool `json:"breakGlass"`

	// decisions that people have made on the request.
	// +listType=map
	// +listMapKey=user
	// +listMapKey=verdict
	// +kubebuilder:validation:MaxItems=16
	// +default=[]
	// +optional
	Decisions []SudoDecision `json:"decisions"`
}

// SudoRequestStatus is what the operator reports about a request.
type SudoRequestStatus struct {
	// observedGeneration is the generation that the condition speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startTime is when the operator began to grant the request, by the API server's clock.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// endTime is when the right ends by itself.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// timer is the UID of the Job that ends the right. If it is deleted before its time, the right ends: no second one is made.
	// +optional
	Timer types.UID `json:"timer,omitempty"`

	// conditions has Active.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.message) <= 4096)",message="a message may have at most 4096 characters: shorten it"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SudoRequest asks for sudo in the tree of the tenant in whose root namespace it lies. Others approve it, and the right ends by itself.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sudoreq,categories=warren
// +kubebuilder:printcolumn:name="USER",type=string,JSONPath=`.spec.user`
// +kubebuilder:printcolumn:name="FOR",type=string,JSONPath=`.spec.duration`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].reason`
// +kubebuilder:printcolumn:name="ENDS",type=string,JSONPath=`.status.endTime`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type SudoRequest struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec states who asks for sudo, why and for how long, and what was decided.
	// +required
	Spec SudoRequestSpec `json:"spec"`

	// status is what the operator reports.
	// +optional
	Status SudoRequestStatus `json:"status,omitempty"`
}

// SudoRequestList is a list of SudoRequests.
//
// +kubebuilder:object:root=true
type SudoRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SudoRequest `json:"items"`
}
