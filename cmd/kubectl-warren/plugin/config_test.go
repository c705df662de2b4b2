package plugin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/internal/configfile"
)

const head = "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n"

func TestConfigValidate(t *testing.T) {
	cases := map[string]struct {
		content string
		want    answer // FILE means the name of the file
	}{
		"valid": {head + "inheritance: {labels: [team, pod-security.kubernetes.io/*]}\n", answer{0, "FILE is valid\n", ""}},
		"valid, and probably not meant": {
			head + "subNamespaces: {namingPolicies: [{root: ^app, match: x}]}\n",
			answer{0, "FILE is valid\n",
				"Warning: FILE: subNamespaces.namingPolicies[0].match: \"x\" does not begin with ^: it matches anywhere in a name\n"},
		},
		"every problem": {head + "inheritance:\n  lables: [team]\nlabelKeys: []\nfeatureGates: {Foo: true}\n",
			answer{1, "", strings.Join([]string{
				`error: FILE: inheritance.lables: unknown field "inheritance.lables" (known here: annotations, labels, undelegated)`,
				`error: FILE: labelKeys: unknown field "labelKeys" (use inheritance.labels)`,
				`error: FILE: featureGates[Foo]: Invalid value: "Foo": unknown feature gate: known are BudgetMetrics, PropagateGenerated`, "",
			}, "\n")}},
		"empty": {"", answer{1, "", "error: FILE: the file is empty: it must say at least apiVersion: config.tenancy.warren.dev/v1alpha1 and " +
			"kind: OperatorConfiguration\n"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got := run(t, "kubectl-warren", "config", "validate", file)
			got.out, got.errOut = strings.ReplaceAll(got.out, file, "FILE"), strings.ReplaceAll(got.errOut, file, "FILE")
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A file with nothing but its head is valid. With -o, the whole configuration is printed, with all defaults.
func TestConfigValidatePrints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"yaml", "json"} {
		got := run(t, "kubectl-warren", "config", "validate", file, "-o", format)
		want, err := yaml.Marshal(configfile.Default())
		if err != nil {
			t.Fatal(err)
		}
		printed, err := yaml.JSONToYAML([]byte(got.out))
		if err != nil || got.status != 0 {
			t.Fatalf("%s: status %d, %v, %s", format, got.status, err, got.errOut)
		}
		if diff := cmp.Diff(string(want), string(printed)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", format, diff)
		}
	}
}

func TestRefusalsAboutConfigurations(t *testing.T) {
	refuse(t, map[string]struct{ line, want string }{
		"validate nothing": {"kubectl-warren config validate", "name one file, not 0: kubectl warren config validate FILE"},
		"no such file":     {"kubectl-warren config validate /nofile", "open /nofile: no such file or directory"},
		"empty input": {"kubectl-warren config validate -",
			"-: the file is empty: it must say at least apiVersion: config.tenancy.warren.dev/v1alpha1 and kind: OperatorConfiguration"},
		"validate with -n": {"kubectl-warren config validate x -n y", ignored + "leave it out"},
		"view what":        {"kubectl-warren config view x", `unknown command "x" for "kubectl warren config view"`},
		"no such command": {"kubectl-warren config check",
			`unknown command "check" for "kubectl warren config": see kubectl warren config --help`},
	})
}
