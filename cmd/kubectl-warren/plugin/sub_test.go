package plugin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	noName   = ": must be at most 63 lower-case letters, digits and hyphens, with no hyphen at either end"
	noParent = "name one sub-namespace, and its parent with --namespace: kubectl warren create NAME -n PARENT"
)

// Wrong input is refused before any request is made, so even without a reachable API server.
func TestRefusalsAboutSubNamespaces(t *testing.T) {
	refuse(t, map[string]struct{ line, want string }{
		"create in no namespace":   {"kubectl-warren create a", noParent},
		"create what":              {"kubectl-warren create -n b", noParent},
		"create two":               {"kubectl-warren create a b", noParent},
		"create a wrong name":      {"kubectl-warren create a.b -n c", `invalid namespace name "a.b"` + noName},
		"create in a wrong parent": {"kubectl-warren create a -n b/c", `invalid namespace name "b/c"` + noName},
		"create a wrong label": {"kubectl-warren create a -n b --labels x",
			`invalid argument "x" for "--labels" flag: x must be formatted as key=value`},
		"delete what":              {"kubectl-warren delete", "name one sub-namespace, not 0: kubectl warren delete NAME"},
		"delete, a wrong name":     {"kubectl-warren delete A", `invalid namespace name "A"` + noName},
		"delete in a wrong parent": {"kubectl-warren delete a -n b.c", `invalid namespace name "b.c"` + noName},
		"move where": {"kubectl-warren move a",
			"name a sub-namespace and its new parent, not 1: kubectl warren move NAME PARENT"},
		"move with -n":       {"kubectl-warren move a b -n c", ignored + "leave it out"},
		"move, a wrong name": {"kubectl-warren move a B", `invalid namespace name "B"` + noName},
		"graft where": {"kubectl-warren graft a",
			"name a namespace and its new parent, not 1: kubectl warren graft NAMESPACE PARENT"},
		"graft, a wrong name": {"kubectl-warren graft a/b c", `invalid namespace name "a/b"` + noName},
		"cut two":             {"kubectl-warren cut a b", "name one sub-namespace, not 2: kubectl warren cut NAME"},
		"cut, a wrong dry run": {"kubectl-warren cut a --dry-run=yes",
			`invalid argument "yes" for "--dry-run" flag: must be none, client or server`},
	})
}

// With --dry-run=client, a command that has nothing to read needs no API server.
func TestSubCreateRehearsed(t *testing.T) {
	const made = `apiVersion: tenancy.warren.dev/v1alpha1
kind: SubNamespace
metadata:
  name: a
  namespace: b
spec:
  annotations:
    memo: x
  labels:
    app: web
    team: neco
`
	cases := map[string]struct{ line, want string }{
		"two labels at once": {"kubectl-warren create a -n b --labels app=web,team=neco --annotations memo=x --dry-run=client -o yaml", made},
		"one by one": {
			"kubectl-warren create a -n b --labels app=web --labels team=neco --annotations memo=x --dry-run=client -o yaml", made},
		"its name": {"kubectl-warren create a -n b --dry-run=client --wait", "subnamespace.tenancy.warren.dev/a created (dry run)\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(answer{0, c.want, ""}, run(t, strings.Fields(c.line)...), cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNamespaceOfTheContext(t *testing.T) {
	const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": [{"name": "c", "context": {"namespace": "b"}}]}`
	t.Run("SUB-X30 create and describe without --namespace or NAMESPACE act in the namespace of the kubeconfig's context", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
		got := run(t, "kubectl-warren", "create", "a", "--dry-run=client", "-o", "yaml", "--kubeconfig", path)
		if !strings.Contains(got.out, "  name: a\n  namespace: b\n") {
			t.Errorf("create: %+v", got)
		}
		got = run(t, "kubectl-warren", "describe", "--kubeconfig", path, "-s", nowhere)
		if !strings.Contains(got.errOut, "can't reach the API server") {
			t.Errorf("describe: %+v", got)
		}
	})
}
