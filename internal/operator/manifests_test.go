package operator

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const head = "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n"

func TestManifests(t *testing.T) {
	out := &bytes.Buffer{}
	handled, err := RunSubcommand(context.Background(), "manifests",
		[]string{"--config", file(t, head+"propagation: {kinds: [{kind: Service}]}")}, out)
	if !handled || err != nil {
		t.Fatal(handled, err)
	}
	for _, name := range []string{"name: warren-copy\n", "name: warren-copy-access\n", "name: warren-copy-distributed\n",
		"name: warren-operator-cage-objects\n", "name: warren-kinds-configured\n", "- services/status\n", "resources: [services]\n"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("%q isn't in the output", name)
		}
	}
}

// Without flags, the command prints the files that are in the repository.
func TestManifestsOfTheDefaults(t *testing.T) {
	out, dir := &bytes.Buffer{}, t.TempDir()
	if err := printManifests([]string{"--dir", dir}, out); err != nil || out.Len() > 0 {
		t.Fatal(err, out)
	}
	for _, name := range []string{"policy/copy.yaml", "policy/rail_names.yaml", "policy/operator_cage_objects.yaml",
		"rbac/kinds_configured_role.yaml", "hints/source_hints.yaml"} {
		want, err := os.ReadFile(filepath.Join("../../config", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("config/%s differs (%v): make manifests", name, err)
		}
	}
}

func TestManifestsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a file that isn't there": {[]string{"--config=/nowhere"}, "/nowhere: there is no such file: create it, or leave out --config to run " +
			"with the defaults"},
		"a wrong file": {[]string{"--config", file(t, head+"propagation: {kinds: [{kind: Pod}]}")},
			"propagation.kinds[0].kind: Forbidden: Pod can't be propagated"},
		"an argument":     {[]string{"config.yaml"}, `unknown argument "config.yaml": manifests takes flags only`},
		"an unknown flag": {[]string{"--confg=x"}, "flag provided but not defined: -confg"},
		"no folder":       {[]string{"--dir=/nowhere"}, `--dir "/nowhere": there is no such folder`},
	} {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			err := printManifests(c.args, out)
			if err == nil || !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
				t.Errorf("got %v and output %q, want %q", err, out, c.want)
			}
		})
	}
	if handled, err := RunSubcommand(context.Background(), "manifest", nil, &bytes.Buffer{}); handled || err != nil {
		t.Errorf("an unknown subcommand: %v, %v", handled, err)
	}
}
