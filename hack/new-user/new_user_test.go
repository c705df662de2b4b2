package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

const richard = "richard-song-test-user"

// signing returns the options of a control plane that signs client certificates, as a real cluster does.
func signing(t *testing.T) controlplane.Options {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "test users"}, key)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	caPEM, err := cert.EncodeCertificates(ca)
	if err != nil {
		t.Fatal(err)
	}
	caFile, keyFile := filepath.Join(t.TempDir(), "ca.crt"), filepath.Join(t.TempDir(), "ca.key")
	for file, text := range map[string][]byte{caFile: caPEM, keyFile: keyPEM} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return controlplane.Options{
		APIServerArgs:         []string{"--client-ca-file", caFile},
		ControllerManagerArgs: []string{"--cluster-signing-cert-file", caFile, "--cluster-signing-key-file", keyFile},
	}
}

func TestNewUser(t *testing.T) {
	w, err := devcluster.Start(t.Context(), devcluster.Options{ControlPlane: signing(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "richard.kubeconfig")
	admin := w.Kubeconfig(controlplane.Admin)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-kubeconfig", admin, "-o", file, richard, "testers"}, &out); err != nil {
		t.Fatal(err)
	}
	as := func(args ...string) (string, string, int) {
		kubectl := devcluster.Kubectl{Path: w.KubectlPath, Plugins: w.Plugins, Home: filepath.Join(w.Dir, "home")}
		return kubectl.Run(t.Context(), file, richard, "", args...)
	}

	t.Run("is who the certificate says", func(t *testing.T) {
		stdout, stderr, code := as("auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
		if want := richard + ` ["testers","system:authenticated"]`; code != 0 || stdout != want {
			t.Errorf("got %q, %q, %d, want %q", stdout, stderr, code, want)
		}
	})
	t.Run("has no right, and sudo as a sudoer of a tenant", func(t *testing.T) { sudoes(t, w, as) })
	t.Run("leaves no request behind", func(t *testing.T) {
		requests := &certificatesv1.CertificateSigningRequestList{}
		if err := w.Admin().List(t.Context(), requests); err != nil || len(requests.Items) > 0 {
			t.Errorf("got %d, %v", len(requests.Items), err)
		}
	})
	t.Run("is written over nobody's file", func(t *testing.T) {
		err := run(t.Context(), []string{"-kubeconfig", admin, "-o", file, "other"}, &out)
		if err == nil || err.Error() != file+" exists: remove it, or choose another file with -o" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("is readable to its owner alone", func(t *testing.T) {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got %v, %v", info.Mode(), err)
		}
	})
}

// sudoes tests what the design requires: a test user on the list of sudoers can use sudo, by --as and --as-group.
func sudoes(t *testing.T, w *devcluster.World, as func(...string) (string, string, int)) {
	if err := w.Admin().Create(t.Context(), build.Tenant("sample").Sudoers(richard).Object()); err != nil {
		t.Fatal(err)
	}
	list := []string{"get", "secrets", "--namespace=sample"}
	sudo := append([]string{"--as=" + richard, "--as-group=sample-sudoers"}, list...)
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		_, stderr, code := as(sudo...)
		last = stderr
		return code == 0, nil
	})
	if err != nil {
		t.Errorf("sudo: %v; the last answer was: %s", err, last)
	}
	if _, stderr, code := as(list...); code != 1 || !strings.Contains(stderr, "Forbidden") {
		t.Errorf("without sudo: got %q, %d, want Forbidden", stderr, code)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no name": {nil, "NAME is missing"},
		"empty":   {[]string{""}, `NAME "" must not be empty, or begin or end with white space`},
		"the cluster's": {[]string{"system:admin"},
			`NAME "system:admin" is reserved: names that start with system: or warren: are not for people`},
		"Warren's": {[]string{"warren:sudo:shop"},
			`NAME "warren:sudo:shop" is reserved: names that start with system: or warren: are not for people`},
		"empty group": {[]string{"bob", "ops", ""}, "a GROUP is empty: leave it out, or name a group"},
		"masters": {[]string{"bob", "ops", "system:masters"},
			`GROUP "system:masters" is reserved: groups that start with system: are the cluster's own`},
		"sudo by birth": {[]string{"bob", "shop-sudoers"},
			`GROUP "shop-sudoers" is reserved: its members would have the rights of sudo without kubectl sudo`},
		"not worth it":     {[]string{"-expires", "1m", "bob"}, "-expires 1m0s is too short: the cluster signs for 10m at least"},
		"no such file":     {[]string{"-kubeconfig", "/nonexistent/x", "bob"}, "/nonexistent/x"},
		"no such context":  {[]string{"-context", "nowhere", "bob"}, "nowhere"},
		"no such duration": {[]string{"-expires", "soon", "bob"}, `invalid value "soon"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("KUBECONFIG", "none")
			err := run(t.Context(), c.args, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
