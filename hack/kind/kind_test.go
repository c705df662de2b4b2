// Package kind_test runs hack/kind.sh with programs in the PATH that stand for kind, Docker, kubectl and make. They write down how they are
// called.
package kind_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/warren-tenancy/warren/test/devcluster"
)

// standIns are programs of /bin/sh. $LOG is the file that they write to.
var standIns = map[string]string{
	"docker":  `[ "$DOCKER" = answers ]`,
	"kubectl": `echo "kubectl $*" >>"$LOG"; [ "$1 $3" != "apply config/samples/tenancy_v1alpha1_lnamespace.yaml" ] || [ -e "$LOG.slept" ]`,
	"sleep":   `echo "sleep $*" >>"$LOG"; touch "$LOG.slept"`,
	"kind": `echo "kind $* with $KUBECONFIG" >>"$LOG"
case "$1" in get) echo "$CLUSTERS" ;; load) [ -z "$FULL" ] && exec cp "$3" "$LOG.loaded" ;; esac`,
	// make image compiles for minutes: here it puts one small program into the image.
	"make": `echo "make $*" >>"$LOG"
for word; do case $word in IMG=*) name=${word#IMG=} ;; IMAGE_TAR=*) out=${word#IMAGE_TAR=} ;; esac; done
[ "$2" != image ] || exec "$GO" run ./hack/image -name "$name" -o "$out" "$PROGRAM"`,
	// helm renders what it would install.
	"go": `[ "$1" = tool ] || exec "$GO" "$@"
shift 3; echo "helm $*" >>"$LOG"; shift 2; exec "$HELM" template "$@" --kube-version 1.36.0 >"$LOG.rendered"`,
}

// trial is one run of the script.
type trial struct{ bin, dir, log string }

// newTrial makes a PATH with the stand-ins but for those named, and with what the script needs beside them.
func newTrial(t *testing.T, without ...string) trial {
	t.Helper()
	trial := trial{bin: t.TempDir(), dir: t.TempDir()}
	trial.log = filepath.Join(t.TempDir(), "log")
	for name, script := range standIns {
		if slices.Contains(without, name) {
			continue
		}
		if err := os.WriteFile(filepath.Join(trial.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bash", "cat", "cp", "date", "dirname", "grep", "mkdir", "touch"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(trial.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return trial
}

// run returns what the script prints, and how the stand-ins were called. Paths and the image's tag are words in capitals.
func (tr trial) run(t *testing.T, env ...string) (out string, calls []string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../kind.sh", tr.dir, "v1.2.3")
	cmd.Env = append(os.Environ(), append(env, "PATH="+tr.bin, "LOG="+tr.log, "CLUSTER=", "NODE=")...)
	printed, err := cmd.CombinedOutput()
	text, readErr := os.ReadFile(tr.log)
	if readErr != nil && !errors.Is(readErr, os.ErrNotExist) {
		t.Fatal(readErr)
	}
	plain := strings.ReplaceAll(string(text), tr.dir, "DIR")
	plain = regexp.MustCompile(`kind-[0-9]+`).ReplaceAllString(plain, "TAG")
	return string(printed), strings.Split(strings.TrimSpace(plain), "\n"), err
}

// programs returns variables with the paths of the programs that the stand-ins run.
func programs(t *testing.T) []string {
	t.Helper()
	goProgram, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	helm, err := devcluster.Helm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "manager")
	cmd := exec.CommandContext(t.Context(), goProgram, "build", "-o", program, "../links")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return []string{"GO=" + goProgram, "HELM=" + helm, "PROGRAM=" + program, "DOCKER=answers"}
}

func TestMakeKind(t *testing.T) {
	t.Run("FLT-U27 make kind loads an image into a cluster of its own, installs the chart with it, and applies a tenant until the webhooks "+
		"answer", func(t *testing.T) {
		tr := newTrial(t)
		out, calls, err := tr.run(t, append(programs(t), "CLUSTERS=other")...)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if diff := cmp.Diff([]string{
			"kind get clusters with DIR/kubeconfig",
			"kind create cluster --name warren with DIR/kubeconfig",
			"make -s image IMG=localhost/warren:TAG IMAGE_TAR=DIR/image.tar",
			"kind load image-archive DIR/image.tar --name warren with DIR/kubeconfig",
			"kubectl apply -f config/manager/namespace.yaml",
			"helm upgrade --install warren DIR/chart/warren --namespace warren-system --set image.tag=TAG --wait --timeout 5m",
			"kubectl apply -f config/samples/tenancy_v1alpha1_lnamespace.yaml",
			"sleep 5",
			"kubectl apply -f config/samples/tenancy_v1alpha1_lnamespace.yaml",
			"kubectl wait lns/payments --for=condition=Ready --timeout=2m",
			"make -s build-plugins",
		}, calls); diff != "" {
			t.Error(diff)
		}
		name := loadedImage(t, tr.log+".loaded")
		rendered, err := os.ReadFile(tr.log + ".rendered")
		if err != nil || !strings.Contains(strings.ReplaceAll(string(rendered), `"`, ""), "image: "+name+"\n") {
			t.Errorf("the chart does not name image %s, which was loaded (%v)", name, err)
		}
		if !strings.Contains(out, "export KUBECONFIG="+tr.dir+"/kubeconfig") {
			t.Errorf("printed %s", out)
		}
	})
	t.Run("FLT-U27 make kind takes an existing cluster of its name, and stops at the first step that fails", func(t *testing.T) {
		tr := newTrial(t)
		out, calls, err := tr.run(t, append(programs(t), "CLUSTERS=other\nwarren", "FULL=disk")...)
		if err == nil || len(calls) != 4 || calls[1] != "kind export kubeconfig --name warren with DIR/kubeconfig" {
			t.Errorf("%v, calls %q: %s", err, calls, out)
		}
	})
	t.Run("FLT-U28 make kind names all programs that are missing in one sentence, and calls none", func(t *testing.T) {
		for reason, c := range map[string]struct {
			without []string
			want    string
		}{
			"all": {[]string{"kind", "docker", "kubectl"}, "the PATH lacks kind (https://kind.sigs.k8s.io), and Docker or podman, and kubectl: " +
				"install what is missing, or run make demo, which needs none of it"},
			"kind": {[]string{"kind"}, "the PATH lacks kind (https://kind.sigs.k8s.io): install"},
			// It is there, but its server is not.
			"Docker": {nil, "no Docker or podman answers: start it, or run make demo, which needs none"},
		} {
			out, calls, err := newTrial(t, c.without...).run(t, "DOCKER=silent")
			if err == nil || !strings.HasPrefix(out, "error: "+c.want) || strings.Count(out, "\n") != 1 || len(calls[0]) > 0 {
				t.Errorf("%s: %v, calls %q: %s", reason, err, calls, out)
			}
		}
	})
}

// loadedImage checks that an archive is an OCI layout with all blobs that it names, and returns the image's name, which Docker's table of
// contents has.
func loadedImage(t *testing.T, path string) string {
	t.Helper()
	archive, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	files := map[string][]byte{}
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	decode := func(content []byte, into any) {
		t.Helper()
		if err := json.NewDecoder(bytes.NewReader(content)).Decode(into); err != nil {
			t.Fatalf("%v in %s", err, content)
		}
	}
	blob := func(d v1.Descriptor) []byte {
		t.Helper()
		content := files["blobs/sha256/"+d.Digest.Encoded()]
		if digest.FromBytes(content) != d.Digest {
			t.Errorf("the archive lacks blob %s", d.Digest)
		}
		return content
	}
	var index v1.Index
	var manifest v1.Manifest
	var docker []struct{ RepoTags []string }
	decode(files["index.json"], &index)
	decode(blob(index.Manifests[0]), &manifest)
	decode(files["manifest.json"], &docker)
	blob(manifest.Config)
	for _, layer := range manifest.Layers {
		blob(layer)
	}
	return docker[0].RepoTags[0]
}
