package configfile_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/configfile"
)

func TestWarnings(t *testing.T) {
	c, err := configfile.Parse("f", []byte(header+`inheritance: {labels: [team]}
subNamespaces:
  labels: [team, "pod-security.kubernetes.io/*", "*/*"]
  namingPolicies: [{root: a, match: "^x"}, {root: a, match: "-x$"}, {root: a, match: "(?:^x)-$0"}, {root: a, match: "^a|b"}]
propagation: {bindOwnRole: true}
controllers: ["-billing"]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`inheritance.labels: nothing matches pod-security.kubernetes.io/enforce: sub-namespaces don't get the level of pod security of ` +
			`their root`,
		`subNamespaces.labels[1]: "pod-security.kubernetes.io/*" matches pod-security.kubernetes.io/enforce: a tenant may choose the level ` +
			`of pod security of its sub-namespaces, but none below the level that comes from above`,
		`subNamespaces.labels[2]: "*/*" matches pod-security.kubernetes.io/enforce: a tenant may choose the level of pod security of its ` +
			`sub-namespaces, but none below the level that comes from above`,
		`subNamespaces.namingPolicies[1].match: "-x$" does not begin with ^: it matches anywhere in a name`,
		`subNamespaces.namingPolicies[3].match: "^a|b" does not begin with ^: it matches anywhere in a name`,
		`propagation.bindOwnRole: true has no effect, because every kind has scope Cluster: give scope Namespaces or Auto to the kinds that ` +
			`the operator may not watch in the whole cluster`,
		`controllers: this list starts no controller: add "*" to run those that are not named`,
	}
	if diff := cmp.Diff(want, configfile.Warnings(c)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := configfile.Warnings(configfile.Default()); got != nil {
		t.Errorf("the defaults warn of nothing, got %v", got)
	}
}

func TestNamingPolicyThatNothingMeets(t *testing.T) {
	for match, met := range map[string]bool{
		"^foo_.*": false, "^[A-Z_]+x": false, "^(a_|B)": false, "^(?:a_){2,}": false, "^${0}.x_": false,
		"^(_|b)?a": true, "^(_|b)a": true, "^(?i:A)": true, "^[^b].[[:alnum:]]_*": true, "^(?:a_){0,3}$": true, "^a-[0-9]+$": true,
	} {
		t.Run("SUB-F11 a naming policy that no name can meet is valid, with a Warning that it matches no name of a namespace; one that some "+
			"name meets has none: "+match, func(t *testing.T) {
			c, err := configfile.Parse("f", []byte(header+"subNamespaces: {namingPolicies: [{root: a, match: '"+match+"'}]}\n"))
			if err != nil {
				t.Fatal(err)
			}
			const text = " matches no name of a namespace, which has a-z, 0-9 and - only: no sub-namespace can be made in these trees"
			warned := slices.Contains(configfile.Warnings(c), `subNamespaces.namingPolicies[0].match: "`+match+`"`+text)
			if warned == met {
				t.Errorf("warnings: %q", configfile.Warnings(c))
			}
		})
	}
}
