package devcluster_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

func TestWorld(t *testing.T) {
	began := time.Now()
	first, err := devcluster.Start(t.Context(), devcluster.Options{WithoutOperator: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := first.Stop(); err != nil {
			t.Error(err)
		}
	})
	w, err := devcluster.Connect(first.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("our kinds are served", func(t *testing.T) {
		tenants := &v1alpha1.LNamespaceList{}
		if err := w.Admin().List(t.Context(), tenants); err != nil {
			t.Error(err)
		}
	})
	t.Run("the operator's writes are counted, and nobody else's", func(t *testing.T) { writesAreCounted(t, w) })
	t.Run("sudo is asked of the API server", func(t *testing.T) {
		err := w.Sudo("bob", "payments").List(t.Context(), &corev1.PodList{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "impersonate") {
			t.Errorf("bob's sudo without a tenant: got %v", err)
		}
	})
	t.Run("kubectl runs as the user", func(t *testing.T) {
		out, problems, code := w.Kubectl(t.Context(), "bob", "auth", "whoami")
		if code != 0 || !strings.Contains(out, "bob") {
			t.Errorf("code %d: %s%s", code, out, problems)
		}
		_, problems, code = w.Kubectl(t.Context(), "bob", "get", "secrets", "-A")
		if code != 1 || !strings.Contains(problems, "forbidden") {
			t.Errorf("code %d: %s", code, problems)
		}
	})
	t.Run("who only connected stops nothing", func(t *testing.T) {
		if err := w.Stop(); err != nil || !first.ControlPlane.APIServer.Running() {
			t.Errorf("stopped: %v", err)
		}
	})
}

func writesAreCounted(t *testing.T, w *devcluster.World) {
	ctx := t.Context()
	mark, err := w.Mark(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for user, name := range map[string]string{controlplane.Operator: "counted", controlplane.Admin: "not-counted"} {
		if err := w.As(user).Create(ctx, build.Root(name)); err != nil {
			t.Errorf("as %s: %v", user, err)
		}
	}
	writes, err := w.Writes(ctx, mark)
	if err != nil || len(writes) != 1 {
		t.Fatalf("got %v, %v, want one", writes, err)
	}
	if got := writes[0]; got.Verb != "create" || got.Resource != "namespaces" || got.Name != "counted" || got.Code != 201 {
		t.Errorf("got %v", got)
	}
}
