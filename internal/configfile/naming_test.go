package configfile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

func TestCheckName(t *testing.T) {
	// These are the policies of section 3 of docs/behaviour/subnamespaces.md. The first seven cases and Leftmost have the names of SUB-N1 to
	// SUB-N4.
	fixture := []config.NamingPolicy{
		{Root: "^app-(?P<team>.*)", Match: "^app-${team}-.*"},
		{Root: "^two-", Match: "-x$"},
	}
	cases := map[string]struct {
		reason     string
		policies   []config.NamingPolicy
		root, name string
		want       string
	}{
		"OwnTeam": {reason: "the group is the team's name", policies: fixture, root: "app-team1", name: "app-team1-a"},
		"AnotherTeam": {reason: "names the refused name", policies: fixture, root: "app-team1", name: "app-team2-a",
			want: `name "app-team2-a" breaks the naming policy of root app-team1: must match ^app-team1-.*`},
		"NotAtTheStart": {reason: "match has its own anchor", policies: fixture, root: "app-team1", name: "x-app-team1-a",
			want: `name "x-app-team1-a" breaks the naming policy of root app-team1: must match ^app-team1-.*`},
		"AnyDepth": {reason: "judged by the root's name, however deep", policies: fixture, root: "app-team1", name: "zzz",
			want: `name "zzz" breaks the naming policy of root app-team1: must match ^app-team1-.*`},
		"Dollar": {reason: "a dollar at the end is the end of the text", policies: fixture, root: "two-a", name: "foo",
			want: `name "foo" breaks the naming policy of root two-a: must match -x$`},
		"DollarMet": {reason: "unanchored", policies: fixture, root: "two-a", name: "foo-x"},
		"NoPolicy":  {reason: "no policy applies", policies: fixture, root: "other", name: "anything"},
		"Leftmost": {
			reason:   "the leftmost match only: banana has three",
			policies: []config.NamingPolicy{{Root: "a", Match: "^z-$0"}},
			root:     "banana", name: "z-a",
		},
		"Quoted": {
			reason:   "a group stands for itself, not for a pattern",
			policies: []config.NamingPolicy{{Root: "^(.*)$", Match: "^$1-"}},
			root:     "a.c", name: "abc-x",
			want: `name "abc-x" breaks the naming policy of root a.c: must match ^a\.c-`,
		},
		"Braces": {
			reason:   "$1x is the group 1x, ${1}x is group 1 and an x; $$ is a dollar",
			policies: []config.NamingPolicy{{Root: "^(a)b?", Match: "^${1}x$$"}},
			root:     "ab", name: "ax",
		},
		"AbsentGroup": {
			reason:   "a group that took no part is empty",
			policies: []config.NamingPolicy{{Root: "^a(b)?", Match: "^a$1-"}},
			root:     "ac", name: "a-x",
		},
		"AllThatApply": {
			reason:   "each that is broken says so",
			policies: []config.NamingPolicy{{Root: "a", Match: "^b"}, {Root: "a", Match: "^z"}, {Root: "a", Match: "^c"}},
			root:     "a", name: "z",
			want: "name \"z\" breaks the naming policy of root a: must match ^b\nname \"z\" breaks the naming policy of root a: must match ^c",
		},
		"NotWithThisRoot": {
			reason:   "what compiles with x need not with every name; then nothing is allowed",
			policies: []config.NamingPolicy{{Root: "^.", Match: "^[$0-y]"}},
			root:     "z", name: "y",
			want: "name \"y\" can't be judged by the naming policy of root z: error parsing regexp: invalid character class range: `z-y`",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := configfile.CheckName(tc.policies, tc.root, tc.name); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGlobs(t *testing.T) {
	cases := map[string]struct {
		reason string
		globs  config.Globs
		key    string
		want   bool
	}{
		"Nothing":        {reason: "no pattern, no match", key: "team"},
		"Exact":          {reason: "one of several", globs: config.Globs{"app", "team"}, key: "team", want: true},
		"WholeKey":       {reason: "not a part of it", globs: config.Globs{"team"}, key: "team2"},
		"StopsAt/":       {reason: "* stops at /", globs: config.Globs{"*"}, key: "x/team"},
		"Subdomain":      {reason: "a subdomain", globs: config.Globs{"*.glob/*"}, key: "foo.glob/a", want: true},
		"OtherSubdomain": {reason: "another subdomain", globs: config.Globs{"*.glob/*"}, key: "x.y/glob.z"},
		"Undelegated": {reason: "the default list has the domain and what is below it", globs: configfile.Default().Inheritance.Undelegated,
			key: "pod-security.kubernetes.io/enforce", want: true},
		"Excluded": {reason: "the default list has the domain and what ends in it", globs: configfile.Default().Propagation.ExcludedLabels,
			key: "app.kubernetes.io/instance", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.globs.Match(tc.key); got != tc.want {
				t.Errorf("%s: %v.Match(%q) = %v, want %v", tc.reason, tc.globs, tc.key, got, tc.want)
			}
		})
	}
}

func TestNamespaceNames(t *testing.T) {
	c := configfile.Default()
	c.ProtectedNamespaces = config.Globs{"pay-*"}
	type verdict struct{ Protected, FromDistribution, Reserved bool }
	cases := map[string]struct {
		reason string
		want   verdict
	}{
		"default":        {reason: "a target of distributions, never in the forest", want: verdict{true, false, true}},
		"kube-public":    {reason: "built in", want: verdict{true, true, true}},
		"warren-system":  {reason: "the operator's own", want: verdict{true, true, true}},
		"warren-sudo":    {reason: "the rights of sudo on request", want: verdict{true, true, true}},
		"pay-web":        {reason: "the file says so (SUB-F8)", want: verdict{true, true, true}},
		"istio-system":   {reason: "reserved for LNamespaces only (ACC-V03)", want: verdict{false, false, true}},
		"shop":           {reason: "nothing speaks against it", want: verdict{}},
		"kubernetes-lab": {reason: "kube- is a prefix with its dash", want: verdict{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := verdict{c.Protected(name, "warren-system"), c.ProtectedFromDistribution(name, "warren-system"), c.Reserved(name, "warren-system")}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEnabled(t *testing.T) {
	cases := map[string]struct {
		reason  string
		entries []string
		want    []string
	}{
		"All": {reason: "the default", entries: []string{"*"}, want: config.ControllerNames()},
		"AllBut": {reason: "- switches off", entries: []string{"*", "-billing", "-distribution"},
			want: []string{"lnamespace", "access", "subnamespace", "hierarchy", "propagation"}},
		"Some": {reason: "without * only those named", entries: []string{"access"}, want: []string{"access"}},
		"First": {reason: "the first entry that names it decides", entries: []string{"access", "-access", "-billing", "billing"},
			want: []string{"access"}},
		"Nothing": {reason: "an empty list runs nothing", entries: nil, want: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := config.OperatorConfiguration{Controllers: tc.entries}
			var got []string
			for _, controller := range config.ControllerNames() {
				if c.Enabled(controller) {
					got = append(got, controller)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
