package trace

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// nextTrouble is where condition Propagated begins to tell of another object, or reports how many more there are.
var nextTrouble = regexp.MustCompile(`; ([A-Z][A-Za-z0-9]* "[^"]*" from "|and [0-9]+ more$)`)

// describeDue returns the end of a sentence about a copy from a namespace that is due and not there: what condition Propagated says of
// it here or, about limits, where the source stands; that it is not there yet if nothing is said.
func (c Case) describeDue(from string) string {
	for _, namespace := range []string{c.Slot.Namespace, from} {
		found := v1alpha1.FindCondition(c.View.Conditions[namespace], v1alpha1.ConditionPropagated)
		if found == nil || found.Status != metav1.ConditionFalse {
			continue
		}
		if text := c.findTrouble(found, from); text != "" {
			return fmt.Sprintf(", but does not exist: %s: %s", found.Reason, text)
		}
	}
	return ", but does not exist yet"
}

// findTrouble returns what a condition says of the object; "" if it tells of others alone.
func (c Case) findTrouble(condition *metav1.Condition, from string) string {
	switch v1alpha1.Reason(condition.Reason) {
	case v1alpha1.ReasonNotObserved, v1alpha1.ReasonWaitingForRemoval: // what it names holds up others
		return strings.TrimSpace(condition.Message)
	}
	_, text, found := strings.Cut(condition.Message, fmt.Sprintf("%s %q from %q: ", c.Slot.Kind.Kind, c.Slot.Name, from))
	if !found {
		return ""
	}
	if end := nextTrouble.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	return strings.TrimSpace(text)
}
