package distribute

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Choice says whether a namespace is a target.
type Choice int

// The choices. In a Frozen namespace nothing is written or removed: it is protected, terminating or gone, or it lies below a target
// tree but its ancestors can't be followed to the root, because of a cycle or a missing parent.
const (
	Unchosen Choice = iota
	Chosen
	Frozen
)

// Targets say which namespaces get a copy.
type Targets struct {
	included, excluded map[string]bool
	selector           labels.Selector // nil where none is set
	trees              []string
	union              bool
}

// ReadTargets reads spec.targets.
func ReadTargets(spec v1alpha1.DistributionTargets) (Targets, error) {
	t := Targets{included: nameSet(spec.IncludedNamespaces), excluded: nameSet(spec.ExcludedNamespaces), union: spec.Combination == v1alpha1.CombinationUnion}
	for _, tree := range spec.Trees {
		t.trees = append(t.trees, string(tree))
	}
	for _, one := range spec.IncludedNamespaces {
		if t.excluded[string(one.Name)] {
			return t, fmt.Errorf("spec.targets: namespace %q is both included and excluded", one.Name)
		}
	}
	if spec.NamespaceLabelSelector != nil {
		var err error
		if t.selector, err = metav1.LabelSelectorAsSelector(spec.NamespaceLabelSelector); err != nil {
			return t, fmt.Errorf("spec.targets.namespaceLabelSelector: %w", err)
		}
	}
	return t, nil
}

func nameSet(references []v1alpha1.NamespaceReference) map[string]bool {
	set := make(map[string]bool, len(references))
	for _, one := range references {
		set[string(one.Name)] = true
	}
	return set
}

// Bounded says whether all targets are named, or lie in a named tree.
func (t Targets) Bounded() bool {
	if len(t.included) == 0 && len(t.trees) == 0 {
		return false
	}
	return !t.union || t.selector == nil
}

// Named are the namespaces in includedNamespaces and trees, in alphabetical order, each once.
func (t Targets) Named() []string {
	names := slices.Clone(t.trees)
	for name := range t.included {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Included are the names in includedNamespaces, in alphabetical order.
func (t Targets) Included() []string {
	names := make([]string, 0, len(t.included))
	for name := range t.included {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Trees are the roots of the trees that are targets.
func (t Targets) Trees() []string { return t.trees }

// NotFound are the named namespaces that don't exist.
func (t Targets) NotFound(f *forest.Snapshot) []string {
	return slices.DeleteFunc(t.Named(), func(name string) bool { return f.Namespace(name) != nil })
}

// Choose says whether a namespace is a target. A namespace is never a target if protected says so for its name, or if it has the
// label for protected namespaces.
func (t Targets) Choose(f *forest.Snapshot, namespace string, protected func(string) bool) Choice {
	n := f.Namespace(namespace)
	if n == nil || n.Terminating || protected(namespace) || n.Labels[v1alpha1.LabelProtected] == v1alpha1.True {
		return Frozen
	}
	if t.excluded[namespace] {
		return Unchosen
	}
	var votes []Choice
	if len(t.included) > 0 {
		votes = append(votes, chosenIf(t.included[namespace]))
	}
	if t.selector != nil && !t.selector.Empty() {
		votes = append(votes, chosenIf(t.selector.Matches(labels.Set(f.SelectableLabels(namespace)))))
	}
	if len(t.trees) > 0 {
		votes = append(votes, t.inTrees(f, namespace))
	}
	switch {
	case len(votes) == 0:
		return Chosen
	case t.union && slices.Contains(votes, Chosen):
		return Chosen
	case !t.union && slices.Contains(votes, Unchosen):
		return Unchosen
	case slices.Contains(votes, Frozen):
		return Frozen
	}
	return votes[0]
}

func chosenIf(yes bool) Choice {
	if yes {
		return Chosen
	}
	return Unchosen
}

// inTrees says whether a namespace is, or lies below, one of the trees.
func (t Targets) inTrees(f *forest.Snapshot, namespace string) Choice {
	place := f.Place(namespace)
	for _, tree := range t.trees {
		if namespace == tree || slices.Contains(place.Path, tree) {
			return Chosen
		}
	}
	if !place.Halted() {
		return Unchosen
	}
	for _, tree := range t.trees {
		if slices.Contains(f.Subtree(tree), namespace) {
			return Frozen
		}
	}
	return Unchosen
}
