package distribute

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Choice reports whether a namespace is a target.
type Choice int

// The choices. In a Frozen namespace nothing is written or removed. It is protected, terminating or gone, or
// spec.targets means another namespace by its name. Or it lies below a tree of spec.targets but is halted: a cycle or a
// missing parent breaks its path to the root.
const (
	Unchosen Choice = iota
	Chosen
	Frozen
)

// Targets determine which namespaces get a copy.
type Targets struct {
	included, excluded   map[string]bool
	selector             labels.Selector // nil where none is set
	trees, excludedTrees []string
	hash                 string // of spec.targets; a record of names (Named) with another hash was made for other targets
}

// ReadTargets reads spec.targets.
func ReadTargets(spec v1alpha1.DistributionTargets) (Targets, error) {
	t := Targets{included: nameSet(spec.IncludedNamespaces), excluded: nameSet(spec.ExcludedNamespaces)}
	for _, tree := range spec.Trees {
		t.trees = append(t.trees, string(tree))
	}
	for _, tree := range spec.ExcludedTrees {
		if t.excludedTrees = append(t.excludedTrees, string(tree)); slices.Contains(spec.Trees, tree) {
			return t, fmt.Errorf("spec.targets: %q is both in trees and in excludedTrees; take it out of one of them", tree)
		}
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

// Bounded reports whether all targets are named, or lie in a named tree.
func (t Targets) Bounded() bool { return len(t.included) > 0 || len(t.trees) > 0 }

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
func (t Targets) Included() []string { return slices.Sorted(maps.Keys(t.included)) }

// Excluded are the names in excludedNamespaces, in alphabetical order.
func (t Targets) Excluded() []string { return slices.Sorted(maps.Keys(t.excluded)) }

// ExcludedTrees are the roots of the trees that are no targets.
func (t Targets) ExcludedTrees() []string { return t.excludedTrees }

// NotFound are the named namespaces that don't exist.
func (t Targets) NotFound(f *forest.Snapshot) []string {
	return slices.DeleteFunc(t.Named(), func(name string) bool { return f.Namespace(name) != nil })
}

// Everybody reports whether nothing in spec.targets limits the choice: every namespace that isn't protected or excluded
// is a target.
func (t Targets) Everybody() bool {
	return len(t.included) == 0 && len(t.trees) == 0 && (t.selector == nil || t.selector.Empty())
}

// DescribeEverybody returns the warning for targets of which Everybody is true, and which select count namespaces.
func (t Targets) DescribeEverybody(count int) string {
	but := ""
	if len(t.excluded)+len(t.excludedTrees) > 0 {
		but = " that it does not exclude"
	}
	return fmt.Sprintf("spec.targets selects all %d namespaces%s, and every later one; to choose, set includedNamespaces, "+
		"namespaceLabelSelector or trees; "+
		"if all are meant, set allNamespaces: true", count, but)
}

// Covers returns where targets that are bounded may lie: the namespaces named, and the trees. There are no trees if
// includedNamespaces is set, because then the names alone limit the targets.
func (t Targets) Covers() (names, trees []string) {
	names = slices.DeleteFunc(t.Included(), func(name string) bool { return t.excluded[name] })
	if len(t.included) > 0 {
		return names, nil
	}
	return names, t.trees
}

// Choose reports whether a namespace is a target: each option that is set must choose it. named records which
// namespaces the names in spec.targets mean. A namespace is never a target if protected returns true for its name, or
// if it has the label for protected namespaces.
func (t Targets) Choose(f *forest.Snapshot, namespace string, protected func(string) bool, named Named) Choice {
	n := f.Namespace(namespace)
	if n == nil || n.Terminating || protected(namespace) || n.Labels[v1alpha1.LabelProtected] == v1alpha1.True {
		return Frozen
	}
	// Exclusions come first: no other option can make an excluded namespace a target (DIST-D05).
	if t.excluded[namespace] {
		return Unchosen
	}
	var place forest.Place
	if len(t.trees)+len(t.excludedTrees) > 0 {
		place = f.Place(namespace)
	}
	for _, tree := range t.excludedTrees {
		switch inTree(f, namespace, place, tree) {
		case Chosen:
			return Unchosen
		case Frozen:
			return Frozen
		}
	}
	var votes []Choice
	if len(t.included) > 0 {
		votes = append(votes, decideMeant(chosenIf(t.included[namespace]), namespace, f, named))
	}
	if t.selector != nil && !t.selector.Empty() {
		votes = append(votes, chosenIf(t.selector.Matches(labels.Set(f.SelectableLabels(namespace)))))
	}
	if len(t.trees) > 0 {
		inOne := make([]Choice, 0, len(t.trees))
		for _, tree := range t.trees {
			inOne = append(inOne, decideMeant(inTree(f, namespace, place, tree), tree, f, named))
		}
		votes = append(votes, anyOf(inOne))
	}
	switch {
	// One option that is sure to leave the namespace out decides, even where another can't be judged.
	case slices.Contains(votes, Unchosen):
		return Unchosen
	case slices.Contains(votes, Frozen):
		return Frozen
	}
	return Chosen
}

// anyOf returns Chosen if one vote is Chosen, else Frozen if one is Frozen, else Unchosen.
func anyOf(votes []Choice) Choice {
	switch {
	case slices.Contains(votes, Chosen):
		return Chosen
	case slices.Contains(votes, Frozen):
		return Frozen
	}
	return Unchosen
}

func chosenIf(yes bool) Choice {
	if yes {
		return Chosen
	}
	return Unchosen
}

// decideMeant returns choice, but Frozen in place of Chosen if name, from spec.targets, means another namespace than
// the present one.
func decideMeant(choice Choice, name string, f *forest.Snapshot, named Named) Choice {
	if choice == Chosen && !named.Means(f, name) {
		return Frozen
	}
	return choice
}

// inTree returns Chosen for a namespace that is tree or lies below it, and Frozen for a halted one that may lie below
// it.
func inTree(f *forest.Snapshot, namespace string, place forest.Place, tree string) Choice {
	switch {
	case namespace == tree, slices.Contains(place.Path, tree):
		return Chosen
	case !place.Halted():
		return Unchosen
	case f.IsBelow(namespace, tree), f.StoodBelow(namespace, tree):
		return Frozen
	}
	return Unchosen
}

// Named records which namespaces the names in includedNamespaces and trees mean: for each name a digest of the
// namespace's UID. So a namespace that takes the name of a missing or deleted one gets no copy. In the zero value,
// every name means the namespace that has it now.
type Named map[string]string

// nobody is the record of a name that means no namespace yet. If a namespace has the name, but isn't meant, its digest
// follows: that decision stays, whatever becomes of the namespace later.
const nobody = "-"

// digestLength is the length of a record that digestOf returns, which may begin with "-", too.
const digestLength = 8

// digestOf returns the record of a UID: 48 bits of its SHA-256. More are not needed, because nobody can choose the UID
// of a namespace. A short record keeps the status small, which holds up to 600 of them.
func digestOf(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// ReadNamed returns the record in a status; nil if the status has no record for these targets.
func (t Targets) ReadNamed(status *v1alpha1.ResourceDistributionStatus) Named {
	names := t.Named()
	if status.Named == nil || status.Named.Targets != t.hash || len(status.Named.UIDs) != len(names) {
		return nil
	}
	named := make(Named, len(names))
	for i, name := range names {
		named[name] = status.Named.UIDs[i]
	}
	return named
}

// buildRecord returns the record as a status holds it; nil if it is empty.
func (n Named) buildRecord(t Targets, written time.Time) *v1alpha1.NamedNamespaces {
	if len(n) == 0 {
		return nil
	}
	record := &v1alpha1.NamedNamespaces{Targets: t.hash, Written: &metav1.Time{Time: written}}
	for _, name := range t.Named() {
		record.UIDs = append(record.UIDs, n[name])
	}
	return record
}

// Means reports whether the namespace that has a name now is the one that the name means. It is true for a name without
// a record.
func (n Named) Means(f *forest.Snapshot, name string) bool {
	recorded, ok := n[name]
	if !ok {
		return true
	}
	namespace := f.Namespace(name)
	return namespace != nil && recorded == digestOf(namespace.UID)
}

// Replaced returns the names that now belong to another namespace than the one that was meant, in alphabetical order. One that is being
// deleted has replaced none: it may be older than the record.
func (n Named) Replaced(f *forest.Snapshot) []string {
	var names []string
	for name := range n {
		if namespace := f.Namespace(name); namespace != nil && !namespace.Terminating && !n.Means(f, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// RecordNames returns known with a record added for each name that had none and now has a namespace that is meant.
// changed reports whether the result differs from known. A status that an earlier version wrote has no record: then
// each name means the namespace that has it.
func (d *Distribution) RecordNames(f *forest.Snapshot, known Named) (named Named, changed bool) {
	named = Named{}
	for _, name := range d.Targets.Named() {
		named[name] = nobody
		if recorded := known[name]; recorded != "" {
			named[name] = recorded
		}
		if n := f.Namespace(name); n != nil && !n.Terminating && len(named[name]) != digestLength {
			named[name] = d.decideRecord(f, n, named[name], known == nil && d.unrecorded)
		}
		changed = changed || named[name] != known[name]
	}
	return named, changed
}

// decideRecord returns the record of the name that n has, which means no namespace so far.
func (d *Distribution) decideRecord(f *forest.Snapshot, n *forest.Namespace, recorded string, unrecorded bool) string {
	digest := digestOf(n.UID)
	// A decision against this namespace stays, whatever becomes of the object that created it (DIST-D119).
	if recorded == nobody+digest {
		return recorded
	}
	switch meant, decided := d.isMeant(f, n); {
	case meant || unrecorded:
		return digest
	case decided:
		return nobody + digest
	}
	return nobody
}

// isMeant reports whether a namespace that has a name of spec.targets is the one that was meant. decided is false while
// the LNamespace or SubNamespace for which the operator created it isn't known.
func (d *Distribution) isMeant(f *forest.Snapshot, n *forest.Namespace) (meant, decided bool) {
	before := func(created time.Time) bool { return !created.IsZero() && created.Before(d.written) }
	sub, tenant := f.Sub(n.Parent(), n.Name), f.Tenant(n.Name)
	switch {
	// It had the name when spec.targets was written.
	case before(n.Created):
		return true, true
	// Also without the label of its creator, a bound namespace belongs to a SubNamespace (DIST-D119).
	case n.Bound():
		return sub != nil && before(sub.Created), sub != nil
	// Made directly, or by the operator and then taken out of its tree. To create a namespace directly takes a right in
	// the whole cluster, which no tenant has.
	case n.TenantUID() == "":
		return n.Labels[v1alpha1.LabelCreatedBy] != v1alpha1.OperatorName, true
	// Not decided: the operator may see a namespace before the LNamespace that it was created for (DIST-D93).
	case tenant == nil || tenant.UID != n.TenantUID():
		return false, false
	}
	// A tenant must not get the name, unless its object had claimed it before.
	return tenant.IsMadeByAdmin() || before(tenant.Created), true
}
