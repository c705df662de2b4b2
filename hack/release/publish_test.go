package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// publish runs hack/publish.sh for a version, with programs in the PATH that stand for those that reach a network. It returns what the
// script prints, and the commands that it runs.
func publish(t *testing.T, mode, version, dir string) (out string, commands []string, err error) {
	t.Helper()
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	for _, name := range []string{"skopeo", "docker", "gh", "go"} {
		writeFile(t, filepath.Join(bin, name), "#!/bin/sh\necho \""+name+" $*\" >>'"+log+"'\n")
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "../publish.sh", mode, version, "registry.example/warren", "registry.example/charts", dir)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PLATFORMS=linux/amd64 darwin/arm64 linux/arm64")
	printed, err := cmd.CombinedOutput()
	text, readErr := os.ReadFile(log)
	if readErr != nil && !errors.Is(readErr, os.ErrNotExist) {
		t.Fatal(readErr)
	}
	return string(printed), strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), err
}

func TestPublishing(t *testing.T) {
	const version = "v0.1.0" // CHANGELOG.md has it
	dir := t.TempDir()
	r := release{version: version, out: dir}
	for _, name := range []string{"install-open.yaml", "warren-v0.1.0-image-linux-amd64.tar", "kubectl-warren-v0.1.0-linux-amd64.tar.gz",
		"warren-v0.1.0-linux-amd64.cdx.json", "krew/sudo.yaml", "chart/warren-0.1.0.tgz"} {
		writeFile(t, filepath.Join(dir, name), name)
	}
	if err := r.writeChecksums(); err != nil {
		t.Fatal(err)
	}

	t.Run("FLT-U29 make release-check runs no program that reaches a network; it prints the commands that the workflow of a tag runs",
		func(t *testing.T) {
			out, ran, err := publish(t, "check", version, dir)
			if err != nil || len(ran) > 0 {
				t.Fatalf("%v: %s; it has run %q", err, out, ran)
			}
			var printed, want []string
			for line := range strings.Lines(out) {
				if !strings.HasPrefix(line, "#") {
					printed = append(printed, strings.TrimSpace(line))
				}
			}
			for _, mode := range []string{"push", "page"} {
				out, ran, err := publish(t, mode, version, dir)
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				want = append(want, ran...)
			}
			if diff := cmp.Diff(want, printed); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{
				"skopeo copy oci-archive:DIR/warren-v0.1.0-image-linux-amd64.tar docker://registry.example/warren:v0.1.0-amd64",
				"skopeo copy oci-archive:DIR/warren-v0.1.0-image-linux-arm64.tar docker://registry.example/warren:v0.1.0-arm64",
				"docker buildx imagetools create --tag registry.example/warren:v0.1.0 " +
					"registry.example/warren:v0.1.0-amd64 registry.example/warren:v0.1.0-arm64",
				"go tool -modfile=hack/helm/go.mod helm push DIR/chart/warren-0.1.0.tgz oci://registry.example/charts",
				"gh release create v0.1.0 --verify-tag --latest --title Warren 0.1.0 --notes-file DIR/CHANGELOG.md DIR/install-open.yaml " +
					"DIR/warren-v0.1.0-image-linux-amd64.tar DIR/kubectl-warren-v0.1.0-linux-amd64.tar.gz DIR/warren-v0.1.0-linux-amd64.cdx.json " +
					"DIR/krew/sudo.yaml DIR/chart/warren-0.1.0.tgz DIR/SHA256SUMS DIR/provenance.json",
			}, strings.Split(strings.ReplaceAll(strings.Join(want, "\n"), dir, "DIR"), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	t.Run("FLT-U30 a version that is none or is not in the changelog, a release that is not made, and a changed file are not published",
		func(t *testing.T) {
			changed := t.TempDir()
			writeFile(t, filepath.Join(changed, "SHA256SUMS"), strings.Repeat("0", 64)+"  file\n")
			writeFile(t, filepath.Join(changed, "file"), "another")
			for want, c := range map[string][2]string{
				"error: VERSION is 0.1.0: must be a semantic version":      {"0.1.0", dir},
				`error: CHANGELOG.md has no section "## v99.0.0"`:          {"v99.0.0", dir},
				"has no SHA256SUMS: run make release VERSION=v0.1.0 first": {version, t.TempDir()},
				"file: FAILED": {version, changed},
			} {
				if out, ran, err := publish(t, "push", c[0], c[1]); err == nil || len(ran) > 0 || !strings.Contains(out, want) {
					t.Errorf("%v, ran %q, printed %q, want %q", err, ran, out, want)
				}
			}
		})
}
