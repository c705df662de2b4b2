package sub

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
)

// If the namespace can't be read, the move may have happened. Then the new SubNamespace owns the namespace, and its deletion would delete
// the namespace.
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
