package tree

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// badConditions returns n's problems: those that its HierarchyConfiguration reports, and those of other types that the
// labels of the namespaces show. The HierarchyConfiguration reports none if it can't be read, or the operator doesn't
// run.
func (v View) badConditions(n *forest.Namespace, place forest.Place) []Condition {
	conditions := []Condition{}
	for _, c := range v.Conditions[n.Name] {
		if IsProblem(c) {
			conditions = append(conditions, Condition{c.Type, c.Status, c.Reason, c.Message})
		}
	}
	for _, found := range v.problemsSeen(n, place) {
		if !slices.ContainsFunc(conditions, func(c Condition) bool { return c.Type == found.Type }) {
			conditions = append(conditions, found)
		}
	}
	slices.SortStableFunc(conditions, func(a, b Condition) int { return conditionRank(a.Type) - conditionRank(b.Type) })
	return conditions
}

// IsProblem reports whether a condition of a HierarchyConfiguration is a problem to show. Ready is none, because it
// repeats the others. A condition with status Unknown is none, because it follows from Halted, or from a request that
// is not carried out yet.
func IsProblem(c metav1.Condition) bool {
	switch v1alpha1.ConditionType(c.Type) {
	case v1alpha1.ConditionReady:
		return false
	case v1alpha1.ConditionHalted:
		return c.Status == metav1.ConditionTrue
	}
	return c.Status == metav1.ConditionFalse
}

// problemsSeen returns the problems that the labels show.
func (v View) problemsSeen(n *forest.Namespace, place forest.Place) []Condition {
	if v.Partial {
		return nil
	}
	var found []Condition
	if place.Halted() {
		found = append(found, Condition{string(v1alpha1.ConditionHalted), metav1.ConditionTrue, string(place.Halt.Reason), place.Halt.Message})
	}
	if n.Template() == "" {
		return found // a whole tree shares its root's template, so the problem is shown at the root only
	}
	if problem := forest.TemplateProblem(v.Forest, n.Name); problem != "" {
		found = append(found, Condition{string(v1alpha1.ConditionMetadataSynced), metav1.ConditionFalse, string(v1alpha1.ReasonTemplateMissing),
			problem})
	}
	return found
}

// conditionRank orders conditions: those that stop everything in the namespace come first; the others keep their order.
func conditionRank(conditionType string) int {
	if conditionType == string(v1alpha1.ConditionHalted) {
		return 0
	}
	return 1
}

// InCycle reports whether the namespace is itself a member of a cycle.
func (n *Node) InCycle() bool {
	return slices.ContainsFunc(n.Conditions, func(c Condition) bool {
		return c.Type == string(v1alpha1.ConditionHalted) && c.Reason == string(v1alpha1.ReasonInCycle)
	})
}
