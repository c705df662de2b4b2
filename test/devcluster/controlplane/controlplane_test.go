package controlplane_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// start starts a control plane for one test.
func start(t *testing.T, options controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	began := time.Now()
	cp, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

func client(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func whoAmI(t *testing.T, config *rest.Config) (authenticationv1.UserInfo, error) {
	t.Helper()
	review, err := client(t, config).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func TestControlPlane(t *testing.T) {
	cp := start(t, controlplane.Options{Users: map[string][]string{"https://acc/1#2%3": {"g,1", "g2"}}, Audit: true})
	t.Run("users are who their tokens say", func(t *testing.T) { usersAreWhoTheirTokensSay(t, cp) })
	t.Run("impersonation needs the right to it", func(t *testing.T) { impersonationNeedsTheRight(t, cp) })
	t.Run("the garbage collector deletes what lost its owner", func(t *testing.T) { ownerlessIsCollected(t, cp) })
	t.Run("a deleted namespace goes", func(t *testing.T) { deletedNamespaceGoes(t, cp) })
	t.Run("kubectl works with a user's own kubeconfig", func(t *testing.T) { kubectlWorks(t, cp) })
	t.Run("the API server comes back at the same address", func(t *testing.T) { comesBack(t, cp) })
	t.Run("stop leaves no process and no file", func(t *testing.T) { stopLeavesNothing(t, cp) })
}

func usersAreWhoTheirTokensSay(t *testing.T, cp *controlplane.ControlPlane) {
	for name, group := range map[string]string{
		controlplane.Admin: "system:masters", "otto": "pay-oncall", "devi": "pay-devs", "alice": "system:authenticated",
		controlplane.Operator: "system:serviceaccounts:warren-system", "https://acc/1#2%3": "g2",
	} {
		info, err := whoAmI(t, cp.Config(name))
		if err != nil || info.Username != name {
			t.Errorf("%s is seen as %q, %v", name, info.Username, err)
		}
		found := false
		for _, g := range info.Groups {
			found = found || g == group
		}
		if !found {
			t.Errorf("%s is in %q, want %q among them", name, info.Groups, group)
		}
	}
}

func impersonationNeedsTheRight(t *testing.T, cp *controlplane.ControlPlane) {
	as := rest.ImpersonationConfig{UserName: "bob", Groups: []string{"payments-sudoers"}}
	config := cp.Config(controlplane.Admin)
	config.Impersonate = as
	if info, err := whoAmI(t, config); err != nil || info.Username != "bob" || info.Groups[0] != "payments-sudoers" {
		t.Errorf("admin as bob: %v, %v", info, err)
	}
	config = cp.Config("bob")
	config.Impersonate = as
	if _, err := whoAmI(t, config); !apierrors.IsForbidden(err) {
		t.Errorf("bob as himself with the group: got %v, want 403", err)
	}
}

func ownerlessIsCollected(t *testing.T, cp *controlplane.ControlPlane) {
	c := client(t, cp.Config(controlplane.Admin))
	_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "orphan", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "mark-for-deletion"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, 3*time.Minute, func(ctx context.Context) bool {
		_, err := c.CoreV1().ConfigMaps("default").Get(ctx, "orphan", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	t.Logf("collected after %s", time.Since(began).Round(time.Millisecond))
}

func deletedNamespaceGoes(t *testing.T, cp *controlplane.ControlPlane) {
	namespaces := client(t, cp.Config(controlplane.Admin)).CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gone"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, 3*time.Minute, func(ctx context.Context) bool {
		_, err := namespaces.Get(ctx, "gone", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	t.Logf("gone after %s", time.Since(began).Round(time.Millisecond))
}

func kubectlWorks(t *testing.T, cp *controlplane.ControlPlane) {
	cmd := exec.CommandContext(t.Context(), cp.KubectlPath, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	cmd.Env = []string{"KUBECONFIG=" + cp.Kubeconfig("alice"), "HOME=" + t.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "alice" {
		t.Errorf("kubectl answered %q, %v", out, err)
	}
}

func comesBack(t *testing.T, cp *controlplane.ControlPlane) {
	if err := cp.APIServer.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := whoAmI(t, cp.Config("alice")); err == nil {
		t.Error("a killed API server answers")
	}
	if err := errors.Join(cp.APIServer.Start(), cp.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	if info, err := whoAmI(t, cp.Config("alice")); err != nil || info.Username != "alice" {
		t.Errorf("after the restart alice is %q, %v", info.Username, err)
	}
}

func stopLeavesNothing(t *testing.T, cp *controlplane.ControlPlane) {
	began := time.Now()
	if err := cp.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped after %s", time.Since(began).Round(time.Millisecond))
	for _, p := range []*process.Process{cp.Etcd, cp.APIServer, cp.Controllers} {
		if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s (%d) is still there: %v", p.Name, p.PID(), err)
		}
	}
	if _, err := os.Stat(cp.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", cp.Dir, err)
	}
}

func TestMissingBinariesNameTheCommandThatBuildsThem(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("WARREN_CONTROLPLANE", "")
	t.Setenv("WARREN_KUBERNETES_VERSION", "")
	_, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err == nil || err.Error() != "control plane 1.36.3 is not built; run: make controlplane" {
		t.Errorf("got %v", err)
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plane")
	_, err := controlplane.Start(t.Context(), controlplane.Options{Dir: dir, APIServerArgs: []string{"--no-such-flag"}})
	if err == nil {
		t.Fatal("an unknown flag was accepted")
	}
	t.Log(err)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func eventually(t *testing.T, within time.Duration, ok func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s", within)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
