package configfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
)

const header = "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n"

// sudoRule is the rule for sudo.mode, with the next step.
const sudoRule = "must be Legacy or Constrained: choose Legacy, unless every API server has constrained impersonation (Kubernetes 1.36)"

// problems parses a file f of header and body. It returns the lines of the error, without their beginning "f: ".
func problems(t *testing.T, body string) []string {
	t.Helper()
	return problemsOf(t, header+body)
}

func problemsOf(t *testing.T, content string) []string {
	t.Helper()
	c, err := configfile.Parse("f", []byte(content))
	if err == nil {
		return nil
	}
	if c != nil {
		t.Error("a configuration beside an error: it must be valid as a whole or not at all")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		rest, ok := strings.CutPrefix(line, "f: ")
		if !ok {
			t.Errorf("line %q does not begin with the file", line)
		}
		lines[i] = rest
	}
	return lines
}

func TestParseFillsInDefaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		want   func(*config.OperatorConfiguration)
	}{
		"Minimal": {
			reason: "a file that says nothing is the default",
			file:   header,
			want:   func(*config.OperatorConfiguration) {},
		},
		"Nulls": {
			reason: "a key without a value is a key that is absent",
			file:   header + "inheritance:\npropagation: {kinds: null, retry: }\nbilling: {resyncInterval: }\nprotectedNamespaces: ~\n",
			want:   func(*config.OperatorConfiguration) {},
		},
		"JSON": {
			reason: "JSON is YAML, tabs and all",
			file: "{\n\t\"apiVersion\": \"config.tenancy.warren.dev/v1alpha1\",\n\t\"kind\": \"OperatorConfiguration\",\n\t\"concurrency\": " +
				"3\n}\n",
			want: func(c *config.OperatorConfiguration) { c.Concurrency = 3 },
		},
		"SeparatorsOnly": {
			reason: "documents without content are not second documents",
			file:   "# the file of f\n---\n" + header + "---\n# nothing\n",
			want:   func(*config.OperatorConfiguration) {},
		},
		"GivenListReplaces": {
			reason: "an empty list is a value, not an absence",
			file:   header + "tenants: {reservedNames: []}\npropagation: {excludedLabels: [a]}\n",
			want: func(c *config.OperatorConfiguration) {
				c.Tenants.ReservedNames = config.Globs{}
				c.Propagation.ExcludedLabels = config.Globs{"a"}
			},
		},
		"NoKinds": {
			reason: "RoleBinding is at least OptIn, also with an empty list (SUB-F7)",
			file:   header + "propagation: {kinds: []}\n",
			want: func(c *config.OperatorConfiguration) {
				c.Propagation.Kinds = []config.PropagatedKind{
					{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding", Mode: config.ModeOptIn, Scope: config.ScopeCluster},
				}
			},
		},
		"Anchors": {
			reason: "an alias stands for its value",
			file:   header + "inheritance: {labels: &keys [team], annotations: *keys}\n",
			want: func(c *config.OperatorConfiguration) {
				c.Inheritance.Labels, c.Inheritance.Annotations = config.Globs{"team"}, config.Globs{"team"}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := configfile.Default()
			tc.want(want)
			got, err := configfile.Parse("f", []byte(tc.file))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseIsStrict(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		want   []string
	}{
		"Empty": {
			reason: "an empty file is a mistake, not a wish for the defaults",
			file:   "# nothing\n---\n",
			want: []string{"the file is empty: it must say at least apiVersion: config.tenancy.warren.dev/v1alpha1 and kind: " +
				"OperatorConfiguration"},
		},
		"NotAMapping": {
			reason: "there is nothing to decode",
			file:   "[a]",
			want:   []string{"the file must be a mapping, is a list"},
		},
		"Syntax": {
			reason: "the parser knows the line",
			file:   header + "a: [\n",
			want:   []string{"neither YAML nor JSON: line 3: did not find expected node content"},
		},
		"NoVersion": {
			reason: "both are required",
			file:   "concurrency: 1\n",
			want: []string{
				"apiVersion: Required value: must be config.tenancy.warren.dev/v1alpha1",
				"kind: Required value: must be OperatorConfiguration",
			},
		},
		"ForeignVersion": {
			reason: "a manifest of something else is told so",
			file:   "apiVersion: v1\nkind: ConfigMap\n",
			want: []string{
				`apiVersion: Invalid value: "v1": must be config.tenancy.warren.dev/v1alpha1`,
				`kind: Invalid value: "ConfigMap": must be OperatorConfiguration`,
			},
		},
		"SecondDocument": {
			reason: "it would be ignored",
			file:   header + "---\n" + header + "sudo: {mode: auto}\n",
			want:   []string{"line 4: a second document: the file must hold one"},
		},
		"Accurate": {
			reason: "each top-level key of Accurate's file says where it belongs; the same name elsewhere is a typo",
			file: header + "labelKeys: []\nannotationKeys: []\nsubNamespaceLabelKeys: []\nsubNamespaceAnnotationKeys: []\nwatches: []\n" +
				"propagateLabelKeyExcludes: []\npropagateAnnotationKeyExcludes: []\nnamingPolicies: []\nsudo: {watches: []}\n",
			want: []string{
				`labelKeys: unknown field "labelKeys" (use inheritance.labels)`,
				`annotationKeys: unknown field "annotationKeys" (use inheritance.annotations)`,
				`subNamespaceLabelKeys: unknown field "subNamespaceLabelKeys" (use subNamespaces.labels)`,
				`subNamespaceAnnotationKeys: unknown field "subNamespaceAnnotationKeys" (use subNamespaces.annotations)`,
				`watches: unknown field "watches" (use propagation.kinds)`,
				`propagateLabelKeyExcludes: unknown field "propagateLabelKeyExcludes" (use propagation.excludedLabels)`,
				`propagateAnnotationKeyExcludes: unknown field "propagateAnnotationKeyExcludes" (use propagation.excludedAnnotations)`,
				`namingPolicies: unknown field "namingPolicies" (use subNamespaces.namingPolicies)`,
				`sudo.watches: unknown field "sudo.watches" (known here: mode, requests)`,
			},
		},
		"WrongTypes": {
			reason: "all at once, each with its path, and without a second sentence about the value that was not read",
			file: header + "inheritance: {labels: team, annotations: [1, ~]}\nconcurrency: \"5\"\ntenants: {maxPerCreator: 1.5}\n" +
				"distribution: {allowOverwrite: yes, maxTotalBytes: 1 GiB, maxObjectBytes: 99999999999999999999}\n" +
				"propagation: {retry: {min: 5}, kinds: [{kind: 7, mode: all}, 3]}\nclientConnection: {qps: fast, burst: .nan}\n" +
				"billing: {defaults: [{costCenter: 4711, labels: {a: 1}}]}\nfeatureGates: {PropagateGenerated: }\n" +
				"subNamespaces: {limits: {depth: [1]}, namingPolicies: {root: a, match: b}}\n",
			want: []string{
				`inheritance.labels: must be a list, is the string "team"`,
				`inheritance.annotations[0]: must be a string, is the number 1`,
				`inheritance.annotations[1]: must have a value, is null`,
				`concurrency: must be a whole number, is the string "5"`,
				`tenants.maxPerCreator: must be a whole number, is the number 1.5`,
				`distribution.allowOverwrite: must be true or false, is the string "yes"`,
				`distribution.maxTotalBytes: must be a number of bytes such as 1048576, 1Mi or 1Gi, is the string "1 GiB"`,
				`distribution.maxObjectBytes: must be a whole number, is the number 99999999999999999999`,
				`propagation.retry.min: must be a duration such as 30s, 5m or 24h, is the number 5`,
				`propagation.kinds[0].kind: must be a string, is the number 7`,
				`propagation.kinds[1]: must be a mapping, is the number 3`,
				`clientConnection.qps: must be a finite number, is the string "fast"`,
				`clientConnection.burst: must be a whole number, is the number .nan`,
				`billing.defaults[0].costCenter: must be a string, is the number 4711`,
				`billing.defaults[0].labels[a]: must be a string, is the number 1`,
				`featureGates[PropagateGenerated]: must have a value, is null`,
				`subNamespaces.limits.depth: must be a whole number, is a list`,
				`subNamespaces.namingPolicies: must be a list, is a mapping`,
				`propagation.kinds[0].mode: Invalid value: "all": must be OptIn, All or Remove`,
			},
		},
		"Numbers": {
			reason: "JSON has no number that isn't finite",
			file:   header + "clientConnection: {qps: .inf}\n",
			want:   []string{`clientConnection.qps: must be a finite number, is the number .inf`},
		},
		"IndexesStay": {
			reason: "an item that was not read leaves the paths of its neighbours as they are, and its section has no second sentence",
			file:   header + "propagation: {neverPropagate: [3, {name: [x]}, {}], kinds: [~, {kind: secret}]}\n",
			want: []string{
				`propagation.neverPropagate[0]: must be a mapping, is the number 3`,
				`propagation.neverPropagate[1].name: must be a string, is a list`,
				`propagation.kinds[0]: must have a value, is null`,
				`propagation.kinds[1].kind: Invalid value: "secret": must be written as in manifests, such as Secret or ConfigMap`,
				`propagation.neverPropagate[2]: Required value: at least one of name, type and labels`,
			},
		},
		"APIVersionOfManyParts": {
			reason: "the serializer leaves it to the rules",
			file:   "apiVersion: a/b/c\nkind: OperatorConfiguration\n",
			want:   []string{`apiVersion: Invalid value: "a/b/c": must be config.tenancy.warren.dev/v1alpha1`},
		},
		"Duplicates": {
			reason: "nobody knows which is meant: the problems of both values are told, every one once",
			file: header + "sudo: {mode: a}\nsudo: {mode: b}\ninheritance:\n  labels: [\"x[\"]\n  labels: [\"y[\"]\n  labels: []\n" +
				"billing: {defaults: [{owner: o, labels: {k: a, k: b}}]}\nconcurrency: 0\n",
			want: []string{
				`sudo: key "sudo" already set`,
				`inheritance.labels: key "labels" already set`,
				`billing.defaults[0].labels[k]: key "k" already set`,
				`sudo.mode: Invalid value: "b": ` + sudoRule,
				`concurrency: Invalid value: 0: must be from 1 to 256`,
				`inheritance.labels[0]: Invalid value: "x[": must be a pattern of path.Match: syntax error in pattern`,
				`sudo.mode: Invalid value: "a": ` + sudoRule,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problemsOf(t, tc.file)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSUBF1EveryProblemInOneRun(t *testing.T) {
	body := `inheritance:
  lables: [team]
  labels: ["a["]
  labels: [team]
subNamespaces:
  namingPolicies: [{root: "^app-", match: "("}]
propagation:
  kinds: [{kind: Secret, mode: all}]
featureGates: {Foo: true}
`
	want := []string{
		`inheritance.lables: unknown field "inheritance.lables" (known here: annotations, labels, undelegated)`,
		`inheritance.labels: key "labels" already set`,
		"subNamespaces.namingPolicies[0].match: Invalid value: \"(\": must be a Go regexp: error parsing regexp: missing closing ): `(`",
		`propagation.kinds[0].mode: Invalid value: "all": must be OptIn, All or Remove`,
		`featureGates[Foo]: Invalid value: "Foo": unknown feature gate: known are BudgetMetrics, PropagateGenerated`,
		`inheritance.labels[0]: Invalid value: "a[": must be a pattern of path.Match: syntax error in pattern`,
	}
	t.Run("SUB-F1 six mistakes in a file are six lines, each with its path", func(t *testing.T) {
		if diff := cmp.Diff(want, problems(t, body)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "warren.yaml")
	if err := os.WriteFile(file, []byte(header+"concurrency: 300\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		path   string
		want   string
	}{
		"Invalid": {reason: "a problem names the file", path: file, want: file + ": concurrency: Invalid value: 300: must be from 1 to 256"},
		"Missing": {reason: "says what to do", path: file + "x",
			want: file + "x: there is no such file: create it, or leave out --config to run with the defaults"},
		"Directory": {reason: "says what it is", path: dir, want: dir + ": the file can't be read: is a directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := configfile.Load(tc.path)
			if err == nil {
				t.Fatalf("%s: no error", tc.reason)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(header + "propagation: {kinds: [{kind: Secret, mode: all}]}\n")
	f.Add(header + "inheritance: {labels: &a [*a]}\n<<: *a\n")
	f.Add("---\n...\n---\n[")
	f.Fuzz(func(t *testing.T, content string) {
		c, err := configfile.Parse("f", []byte(content))
		if (c == nil) == (err == nil) {
			t.Errorf("configuration %v, error %v: want one of the two", c, err)
		}
	})
}
