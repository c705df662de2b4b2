package devcluster_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/warren-tenancy/warren/test/devcluster"
)

func TestOperator(t *testing.T) {
	w, err := devcluster.Start(t.Context(), devcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	o := w.Operator
	metrics, err := o.Metrics(t.Context())
	if err != nil || metrics.Value("go_goroutines", nil) == 0 {
		t.Errorf("metrics: %v, %v goroutines", err, metrics.Value("go_goroutines", nil))
	}
	if !strings.Contains(o.Log(), "Starting") {
		t.Errorf("the log says %q", o.Log())
	}
	if err := w.As("system:serviceaccount:warren-system:warren-controller-manager").List(t.Context(), &corev1.NamespaceList{}); err != nil {
		t.Errorf("the operator's own rights: %v", err)
	}
	if err := o.Kill(); err != nil || o.Process().Running() {
		t.Errorf("after Kill it runs: %v", err)
	}
	if err := o.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, err := o.Stop(); err != nil || code != 0 {
		t.Errorf("stopped with exit code %d, %v:\n%s", code, err, o.Process().LogTail(20))
	}
	if err := o.WriteConfig("kind: Nonsense\n"); err != nil {
		t.Fatal(err)
	}
	if err := o.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("with a configuration that can't be read: %v", err)
	}
}
