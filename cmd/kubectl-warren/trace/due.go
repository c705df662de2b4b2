package trace

import (
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// nextTrouble matches where the message of condition Propagated goes on to another object, or to the number of further
// objects.
var nextTrouble = regexp.MustCompile(`; ([A-Z][A-Za-z0-9]* "[^"]*" from "|and [0-9]+ more$)`)

// describeDue returns the end of a sentence about a missing copy of a source in the namespace from. It is what
// condition Propagated reports about that copy in this namespace or, for limits, in the source's. If neither condition
// reports it, the text is that the copy does not exist yet.
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

// findTrouble returns the part of a condition's message about the missing copy of the source in namespace from; "" if
// there is none. For reasons NotObserved and WaitingForRemoval, it returns the whole message.
func (c Case) findTrouble(condition *metav1.Condition, from string) string {
	switch v1alpha1.Reason(condition.Reason) {
	case v1alpha1.ReasonNotObserved, v1alpha1.ReasonWaitingForRemoval: // the objects in the message delay others, too
		return strings.TrimSpace(condition.Message)
	}
	// \b: what is said of a SealedSecret of that name is not said of the Secret.
	begin := regexp.MustCompile(`\b` + regexp.QuoteMeta(fmt.Sprintf("%s %q from %q: ", c.Slot.Kind.Kind, c.Slot.Name, from)))
	at := begin.FindStringIndex(condition.Message)
	if at == nil {
		return ""
	}
	text := condition.Message[at[1]:]
	if end := nextTrouble.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	return strings.TrimSpace(text)
}
