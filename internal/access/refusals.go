package access

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Refusal is a subject that is listed and gets nothing.
type Refusal struct {
	List    List
	Subject v1alpha1.Subject
	// Why is a sentence for whoever edits the list; it begins with the subject.
	Why string
}

// Refusals are the managers and sudoers that get nothing. inTree says whether a namespace is in the tree of this tenant.
// One that the operator's cage would refuse has to be left out here, for the cage refuses the whole binding with it.
func Refusals(tenant *v1alpha1.LNamespace, inTree func(namespace string) bool, operatorNamespace string) []Refusal {
	var refusals []Refusal
	for _, s := range tenant.Spec.Managers {
		if why := refusedAnywhere(s, operatorNamespace); why != "" {
			refusals = append(refusals, Refusal{List: ListManagers, Subject: s, Why: why})
		}
	}
	for _, s := range tenant.Spec.Sudoers {
		why := refusedAnywhere(s, operatorNamespace)
		if why == "" && s.Kind == v1alpha1.SubjectServiceAccount && inTree(s.Namespace) {
			// Users of the tree may create tokens of its service accounts.
			why = fmt.Sprintf("%s lives in the tree of %s: every user of the tree could become sudoer; bind it to a role instead", s, tenant.Name)
		}
		if why != "" {
			refusals = append(refusals, Refusal{List: ListSudoers, Subject: s, Why: why})
		}
	}
	return refusals
}

func refusedAnywhere(s v1alpha1.Subject, operatorNamespace string) string {
	switch {
	case s.Kind == v1alpha1.SubjectServiceAccount:
		if s.Namespace == operatorNamespace || strings.HasPrefix(s.Namespace, "kube-") {
			return fmt.Sprintf("%s lives in a namespace of the system, whose service accounts can't be managers or sudoers", s)
		}
	case strings.HasPrefix(s.Name, "system:"), strings.HasPrefix(s.Name, "warren:"):
		return fmt.Sprintf("%s has a reserved name: names that start with system: or warren: can't be managers or sudoers", s)
	case s.Kind == v1alpha1.SubjectGroup && strings.HasSuffix(s.Name, v1alpha1.SudoersSuffix):
		return fmt.Sprintf("%s has a reserved name: group names that end in %s can't be managers or sudoers", s, v1alpha1.SudoersSuffix)
	}
	return ""
}

// granted are the subjects of a list that are not refused, in its order. The result is a slice of its own.
func granted(subjects []v1alpha1.Subject, list List, refused []Refusal) []v1alpha1.Subject {
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
