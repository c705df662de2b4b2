package manifests

import (
	"slices"
	"strings"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// HintPrefix starts the name of every policy that warns and never refuses.
const HintPrefix = Prefix + "hint-"

// The regular expressions for one requirement of a label selector. In the hints, requirement replaces requirementMarker: CEL can't parse a
// selector.
const (
	requirementMarker = "<requirement>"
	selectorKey       = `([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
	selectorValue     = `[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
	selectorValues    = `\(\s*(` + selectorValue + `)?(\s*,\s*(` + selectorValue + `)?)*\s*\)`
	requirement       = `(!\s*` + selectorKey + `|` + selectorKey + `(\s*(=|==|!=)\s*(` + selectorValue +
		`)?|\s*[<>]\s*[0-9]+|\s+(in|notin)\s*` + selectorValues + `)?)`
)

// hintsFor returns the policies that warn of sources from which nothing will be copied.
func hintsFor(c *config.OperatorConfiguration) File {
	var propagated []resource
	for _, r := range resourcesOf(c) {
		if slices.ContainsFunc(c.Propagation.Kinds, func(k config.PropagatedKind) bool {
			return k.Mode != config.ModeRemove && k.Group == r.Group && pluralOf(k.GroupKind()) == r.Name
		}) {
			propagated = append(propagated, r)
		}
	}
	hints := fill("hints/source_hints.yaml", rulesOf(byGroup(propagated), false, "CREATE", "UPDATE"))
	hints.Text = []byte(strings.ReplaceAll(string(hints.Text), requirementMarker, requirement))
	return hints
}
