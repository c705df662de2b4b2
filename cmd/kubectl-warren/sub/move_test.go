package sub

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/test/build"
)

// SUB-M9: the operator that does not run keeps the finalizer of the old SubNamespace.
func TestAwaitEndGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		old := New("payments", "pay-web", v1alpha1.SubNamespaceSpec{})
		old.Finalizers, old.DeletionTimestamp = []string{v1alpha1.FinalizerSubNamespace}, new(metav1.Now())
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(old).Build()
		err := awaitEnd(t.Context(), api, "payments", "pay-web")
		const want = "nothing was changed: SubNamespace payments/pay-web is still being deleted after 30s, and would take namespace pay-web " +
			"with it; is the operator running?"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		old.Finalizers = []string{"example.com/hold"}
		api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(old).Build()
		err = awaitEnd(t.Context(), api, "payments", "pay-web")
		const held = "nothing was changed: SubNamespace payments/pay-web is still being deleted after 30s; these finalizers hold it: " +
			"example.com/hold"
		if err == nil || err.Error() != held {
			t.Errorf("got %v, want %s", err, held)
		}
		if err := awaitEnd(t.Context(), api, "payments", "another"); err != nil {
			t.Error(err)
		}
	})
}

// SUB-M9
func TestNoNamespaceIsTakenAlong(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	web := build.Child("pay-web", "payments", v1alpha1.LabelBound, v1alpha1.True)
	old := New("payments", "pay-web", v1alpha1.SubNamespaceSpec{})
	t.Run("SUB-M9 a move that another client has just undone does not delete the old SubNamespace", func(t *testing.T) {
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(web.DeepCopy(), old.DeepCopy()).Build()
		const want = "namespace pay-web has left SubNamespace payments/pay-web, which was not deleted: another client has just moved the " +
			"namespace back"
		if err := deleteReplacedSub(t.Context(), api, "payments", "pay-web"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(old), old.DeepCopy()); err != nil {
			t.Errorf("the SubNamespace: %v", err)
		}
	})
	t.Run("SUB-M9 a move of a namespace that is being deleted is an error: namespace pay-web is being deleted", func(t *testing.T) {
		ending := build.Held(web.DeepCopy())
		ending.DeletionTimestamp = new(metav1.Now())
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ending, old.DeepCopy()).Build()
		m := &move{api: api, name: "pay-web", to: "shop", change: change.AddFlags(&cobra.Command{})}
		if err := m.moveNamespace(t.Context()); err == nil || err.Error() != "namespace pay-web is being deleted" {
			t.Errorf("got %v", err)
		}
	})
}

// If the namespace can't be read, the move may have happened. Then the new SubNamespace owns the namespace, and its
// deletion would delete the namespace.
func TestMoveOfUnknownEndAdvisesNoDeletion(t *testing.T) {
	silent := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no answer")
		},
	}).Build()
	m := &move{api: silent, name: "pay-web", to: "shop", made: New("shop", "pay-web", v1alpha1.SubNamespaceSpec{}),
		change: change.AddFlags(&cobra.Command{})}
	got := m.undoCreation(t.Context(), errors.New("connection lost")).Error()
	if !strings.HasPrefix(got, "connection lost; ") || strings.Contains(got, "delete") || !strings.Contains(got, "run the command again") {
		t.Errorf("%q", got)
	}
}
