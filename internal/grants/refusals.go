package grants

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Refusal is a listed subject that gets nothing.
type Refusal struct {
	List    List
	Subject v1alpha1.Subject
	// Why is a sentence for the person who edits the list; it begins with the subject.
	Why string
}

// Surroundings hold the facts, besides a subject's name, that decide whether the subject gets anything.
type Surroundings struct {
	// OperatorNamespace is the namespace that the operator runs in.
	OperatorNamespace string
	// InTree reports whether a namespace counts as part of the tree of this tenant, sound or halted.
	InTree func(namespace string) bool
	// Doubt explains why the namespace of a service account may not be the one that was meant when the account was
	// listed. It returns "" if there is no doubt.
	Doubt func(account v1alpha1.Subject) string
}

// Refusals returns the subjects of the three lists that get nothing. Among them are all subjects that the API server,
// or the ValidatingAdmissionPolicies on the operator's own writes (its "cage"), would refuse. With such a subject they
// would refuse the whole binding.
func Refusals(tenant *v1alpha1.LNamespace, around Surroundings) []Refusal {
	var refusals []Refusal
	for _, list := range Lists() {
		for _, s := range list.Of(tenant) {
			if why := around.describeRefusal(tenant, list, s); why != "" {
				refusals = append(refusals, Refusal{List: list, Subject: s, Why: why})
			}
		}
	}
	return refusals
}

// describeRefusal explains why the subject of a list gets nothing; "" where it gets what the list grants.
func (a Surroundings) describeRefusal(tenant *v1alpha1.LNamespace, list List, s v1alpha1.Subject) string {
	if why := refuseInvalid(s); why != "" {
		return why
	}
	if s.Kind != v1alpha1.SubjectServiceAccount {
		return refuseName(s)
	}
	switch {
	case s.Namespace == a.OperatorNamespace || strings.HasPrefix(s.Namespace, "kube-"):
		return fmt.Sprintf("%s is in a system namespace, whose service accounts can't be listed: list an account of another namespace", s)
	case a.InTree(s.Namespace):
		// The users of the tree may create tokens of its service accounts, and act as them.
		return fmt.Sprintf("%s lives in the tree of %s, whose users can all act as it, so it can't be among the %s: "+
			"list an account of another namespace, or bind this one to a Role", s, tenant.Name, list)
	}
	return a.Doubt(s)
}

// refuseInvalid explains why no binding can have the subject; "" if one can. RBAC would refuse the whole binding
// because of it, and so also the removal of other subjects. The schema refuses such subjects too, unless the CRD is
// older.
func refuseInvalid(s v1alpha1.Subject) string {
	name, wrong := s.Name, ""
	switch s.Kind {
	case v1alpha1.SubjectUser, v1alpha1.SubjectGroup:
		if s.Name == "" {
			wrong = "name is empty"
		}
	case v1alpha1.SubjectServiceAccount:
		name = s.Namespace + "/" + s.Name
		switch {
		case len(validation.IsDNS1123Subdomain(s.Name)) > 0:
			wrong = "name is not a DNS subdomain"
		case len(validation.IsDNS1123Label(s.Namespace)) > 0:
			wrong = "namespace is not a DNS label"
		}
	default:
		wrong = "kind is not User, Group or ServiceAccount"
	}
	if wrong == "" {
		return ""
	}
	return fmt.Sprintf("%s %q can't be listed: its %s. Correct it, or remove it from the list", s.Kind, name, wrong)
}

// refuseName explains why a User or a Group of this name gets nothing. The schema refuses such names too, unless the
// CRD is older.
func refuseName(s v1alpha1.Subject) string {
	switch {
	case strings.HasPrefix(s.Name, "system:"), strings.HasPrefix(s.Name, "warren:"):
		return fmt.Sprintf("%s has a reserved name: names that start with system: or warren: can't be listed", s)
	case s.Kind == v1alpha1.SubjectGroup && strings.HasSuffix(s.Name, v1alpha1.SudoersSuffix):
		return fmt.Sprintf("%s has a reserved name: group names that end in %s can't be listed", s, v1alpha1.SudoersSuffix)
	}
	return ""
}

// grantedSubjects returns the subjects of a list that are not refused, in the list's order, in a slice of its own.
func grantedSubjects(subjects []v1alpha1.Subject, list List, refused []Refusal) []v1alpha1.Subject {
	result := make([]v1alpha1.Subject, 0, len(subjects)+1)
next:
	for _, s := range subjects {
		for _, r := range refused {
			if r.List == list && r.Subject == s {
				continue next
			}
		}
		result = append(result, s)
	}
	return result
}
