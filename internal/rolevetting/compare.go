package rolevetting

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Severity describes how grave a finding is.
type Severity string

// The severities. A finding has one of them: a dangerous right doesn't count as new, too.
const (
	New    Severity = "new"
	Danger Severity = "danger"
)

// Finding is a right of users that nobody has reviewed, or that users should not hold in daily work.
type Finding struct {
	Severity Severity `json:"severity"`
	// Right is the right that users hold; nil if the finding is about the list itself.
	Right *Right `json:"right,omitempty"`
	// ClusterRoles are the roles that the right comes from.
	ClusterRoles []string `json:"clusterRoles,omitempty"`
	// Message describes the finding in words.
	Message string `json:"message"`
}

// Judge compares a role with the list for a minor version of Kubernetes. It returns the findings, the gravest first, and the list
// that it used. A right is dangerous whatever the list says.
func (l Lists) Judge(role *Role, minor *version.Version) ([]Finding, *List, error) {
	list, exact, err := l.For(minor)
	if err != nil {
		return nil, nil, err
	}
	findings := Compare(role, list)
	if !exact {
		findings = append(findings, Finding{Severity: New,
			Message: fmt.Sprintf("no vetted list for %s; compared with that of Kubernetes %s", minor, list.Kubernetes)})
	}
	return findings, list, nil
}

// Compare returns the rights of a role that are dangerous, and those that the list lacks; dangerous ones first, then in the order
// of rights.
func Compare(role *Role, list *List) []Finding {
	listed := byAction(list.Rules)
	var dangers, news []Finding
	for _, right := range Rights(role.Rules) {
		if right.Dangerous() {
			dangers = append(dangers, role.finding(Danger, right))
			continue
		}
		known, ok := listed[right.actionName()]
		if !ok {
			news = append(news, role.finding(New, right))
		} else if rest, more := right.without(known); more {
			news = append(news, role.finding(New, rest))
		}
	}
	return append(dangers, news...)
}

func (r *Role) finding(severity Severity, right Right) Finding {
	from := r.originsOf(right)
	kind := "ClusterRole"
	if len(from) > 1 {
		kind = "ClusterRoles"
	}
	return Finding{
		Severity: severity, Right: &right, ClusterRoles: from,
		Message: fmt.Sprintf("%s, from %s %s", right, kind, strings.Join(from, ", ")),
	}
}

// Count returns the number of findings of a severity.
func Count(findings []Finding, of Severity) int {
	n := 0
	for _, f := range findings {
		if f.Severity == of {
			n++
		}
	}
	return n
}

// Messages returns the messages of the findings of a severity, in their order.
func Messages(findings []Finding, of Severity) []string {
	var messages []string
	for _, f := range findings {
		if f.Severity == of {
			messages = append(messages, f.Message)
		}
	}
	return messages
}

// Same reports whether a and b are the same findings, by severity and message.
func Same(a, b []Finding) bool {
	return slices.EqualFunc(a, b, func(a, b Finding) bool { return a.Severity == b.Severity && a.Message == b.Message })
}

// Join joins messages, to about room bytes at most, and counts those that it leaves out.
func Join(messages []string, room int) string {
	var b strings.Builder
	for i, message := range messages {
		if b.Len()+len(message) > room {
			if i == 0 {
				return fmt.Sprintf("%d findings", len(messages))
			}
			fmt.Fprintf(&b, "; and %d more", len(messages)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(message)
	}
	return b.String()
}
