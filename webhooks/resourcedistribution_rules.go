package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/text"
)

// maxAsked is the largest number of namespaces about which the authorizer is asked one by one. For more, the user needs
// the right to write everywhere.
const maxAsked = 500

// distributionChange is the change that a request makes to a ResourceDistribution; old is nil where the request creates
// one.
type distributionChange struct {
	forest   *forest.Snapshot
	settings distribute.Settings
	old, now *distribute.Distribution
}

// checkObjectAlone returns the problems that the object, the configuration and the labels of the included namespaces
// show.
func (c distributionChange) checkObjectAlone(targets v1alpha1.DistributionTargets) (f findings) {
	at := field.NewPath("spec")
	switch {
	case c.now.Problem == v1alpha1.ReasonKindNotAllowed:
		f.addProblems(field.Forbidden(at.Child("resource", "kind"), c.now.Why))
	case c.now.Why == distribute.OverwriteDisabled:
		f.addProblems(field.Forbidden(at.Child("conflictPolicy"), c.now.Why))
	case c.now.Problem != "":
		f.addProblems(field.Invalid(at, field.OmitValueType{}, c.now.Why))
	}
	for i, one := range targets.IncludedNamespaces {
		name := string(one.Name)
		n := c.forest.Namespace(name)
		if c.settings.Protected(name) || n != nil && n.Labels[v1alpha1.LabelProtected] == v1alpha1.True {
			f.addProblems(field.Forbidden(at.Child("targets", "includedNamespaces").Index(i).Child("name"), name+" is a protected namespace"))
		}
	}
	return f
}

func (c distributionChange) resourceChanged() bool {
	return c.old == nil || c.old.Template == nil || c.old.Template.Content != c.now.Template.Content
}

func (c distributionChange) targetsChanged() bool { return c.old == nil || c.old.Check != c.now.Check }

// operatorVerbs returns the verbs of the requests that the operator will send on the user's behalf.
func (c distributionChange) operatorVerbs() []string {
	switch c.now.Conflict {
	case v1alpha1.ConflictAdoptIdentical:
		return []string{"create", "update"}
	case v1alpha1.ConflictOverwrite:
		return []string{"create", "update", "delete"}
	}
	return []string{"create"}
}

// addedTargets returns where the change makes the operator write something that it didn't write before. open reports
// that this is everywhere, also in future namespaces; otherwise it is in namespaces, existing or not.
func (c distributionChange) addedTargets() (open bool, namespaces []string) {
	// Another content or conflict policy makes the operator write in all targets, and not only in added ones.
	anew := c.resourceChanged() || c.old.Conflict != c.now.Conflict
	if !c.now.Targets.Bounded() {
		return anew || c.targetsChanged(), nil
	}
	if !anew && !c.targetsChanged() {
		return false, nil
	}
	candidates, trees := c.now.Targets.Covers()
	for _, tree := range trees {
		candidates = append(append(candidates, tree), c.forest.Subtree(tree)...)
	}
	slices.Sort(candidates)
	for _, name := range slices.Compact(candidates) {
		if anew || !c.wasTargetBefore(name) {
			namespaces = append(namespaces, name)
		}
	}
	return false, namespaces
}

// wasTargetBefore reports whether a namespace was a target before the change; for a missing namespace, whether it was
// named as one. A namespace that has taken the name of another one was none.
func (c distributionChange) wasTargetBefore(name string) bool {
	if c.old.Problem == v1alpha1.ReasonInvalidResource {
		return false
	}
	if c.forest.Namespace(name) == nil {
		return slices.Contains(c.old.Targets.Named(), name)
	}
	return c.old.Choose(c.forest, name, c.settings.Protected) == distribute.Chosen
}

// countPresentTargets counts the present targets.
func (c distributionChange) countPresentTargets() (n int) {
	for name := range c.forest.All() {
		if c.now.Choose(c.forest, name, c.settings.Protected) == distribute.Chosen {
			n++
		}
	}
	return n
}

// warningsAboutReach returns warnings about targets that select every namespace without saying so, and about namespaces
// that have taken the name of another one.
func (c distributionChange) warningsAboutReach(targets v1alpha1.DistributionTargets) []string {
	var all []string
	if c.now.Targets.Everybody() && targets.AllNamespaces == nil {
		all = append(all, c.now.Targets.DescribeEverybody(c.countPresentTargets()))
	}
	if c.old == nil {
		return all
	}
	named := c.now.Targets.Named()
	replaced := slices.DeleteFunc(c.old.Named.Replaced(c.forest), func(name string) bool { return !slices.Contains(named, name) })
	switch {
	// New targets mean the namespaces that have the names now (DIST-D92).
	case len(replaced) > 0 && c.targetsChanged():
		all = append(all, "other namespaces have taken these names since spec.targets was written, and are served from now on: "+
			joinFirstNames(replaced))
	case len(replaced) > 0:
		all = append(all, "other namespaces have taken these names since spec.targets was written, and are not served: "+
			joinFirstNames(replaced)+"; to have them served, take the names out of spec.targets and put them in again")
	}
	return all
}

// warningsAboutTargets returns warnings about named namespaces that don't exist, and about copies that the change
// deletes.
func (c distributionChange) warningsAboutTargets() []string {
	var all []string
	if missing := c.now.Targets.NotFound(c.forest); len(missing) > 0 {
		all = append(all, "not found: "+joinFirstNames(missing)+
			"; such a namespace gets the copy if a cluster administrator creates it or its LNamespace, but not if a tenant does")
		if claims := c.claimsTo(missing); len(claims) > 0 {
			all = append(all, "such names are already asked for, and these get the copy as soon as they have their namespaces: "+
				joinFirstNames(claims)+"; if one must not get it, take its name out of spec.targets")
		}
	}
	missing := slices.DeleteFunc(slices.Clone(c.now.Targets.ExcludedTrees()),
		func(name string) bool { return c.forest.Namespace(name) != nil })
	if len(missing) > 0 {
		all = append(all, "not found: "+joinFirstNames(missing)+" in spec.targets.excludedTrees; it excludes nothing until the namespace exists")
	}
	if rooted := c.excludedInTrees(); len(rooted) > 0 && !c.now.Targets.Bounded() {
		all = append(all, "spec.targets.excludedNamespaces excludes only "+joinFirstNames(rooted)+
			": sub-namespaces below get the copy if they are targets; to exclude them too, put these names into excludedTrees instead")
	}
	if c.old == nil || c.old.Problem == v1alpha1.ReasonInvalidResource || c.now.Deletion != v1alpha1.DeletionDelete {
		return all
	}
	leaving := 0
	for name := range c.forest.All() {
		if c.wasTargetBefore(name) && c.now.Choose(c.forest, name, c.settings.Protected) == distribute.Unchosen {
			leaving++
		}
	}
	if leaving > 0 {
		all = append(all, "this removes the copy from "+text.Count(leaving, "namespace", "namespaces"))
	}
	return all
}

// claimsTo returns the LNamespaces and SubNamespaces that ask for one of these names.
func (c distributionChange) claimsTo(names []string) (claims []string) {
	for _, name := range names {
		if c.forest.Tenant(name) != nil {
			claims = append(claims, "LNamespace "+name)
		}
		for _, sub := range c.forest.SubsNamed(name) {
			claims = append(claims, "SubNamespace "+sub.Parent+"/"+name)
		}
	}
	return claims
}

// excludedInTrees returns the names in excludedNamespaces below which sub-namespaces may be made, now or once the
// namespace exists, and that no excluded tree holds.
func (c distributionChange) excludedInTrees() []string {
	return slices.DeleteFunc(c.now.Targets.Excluded(), func(name string) bool {
		path := c.forest.Place(name).Path
		if c.forest.Namespace(name) == nil {
			// A namespace that doesn't exist yet may become a root.
			path = []string{name}
		}
		return len(path) == 0 || slices.ContainsFunc(c.now.Targets.ExcludedTrees(), func(tree string) bool { return slices.Contains(path, tree) })
	})
}

// joinFirstNames joins at most ten names.
func joinFirstNames(names []string) string {
	const most = 10
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// firstRefusedNamespace returns the first namespace that was refused, and the number of the others; "" if none was.
func firstRefusedNamespace(namespaces []string, allowed []bool) string {
	first, more := "", 0
	for i, yes := range allowed {
		switch {
		case yes:
		case first == "":
			first = namespaces[i]
		default:
			more++
		}
	}
	switch {
	case first == "":
		return ""
	case more == 0:
		return fmt.Sprintf("%q", first)
	}
	return fmt.Sprintf("%q (and %d more)", first, more)
}
