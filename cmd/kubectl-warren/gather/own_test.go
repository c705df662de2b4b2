package gather_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/test/build"
)

// asUser answers as the API server does a user of tenant payments, who may list neither namespaces nor LNamespaces.
func asUser(t *testing.T, name string) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New("RBAC"))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(build.Root("payments")).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused },
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			if review, is := object.(*authenticationv1.SelfSubjectReview); is { // SelfSubjectRulesReviews have no rules
				review.Status.UserInfo.Username = name
			}
			return nil
		},
	}).Build()
}

func TestFindTops(t *testing.T) {
	for name, c := range map[string]struct {
		user  string
		homes []string
		want  []string
		lost  string
	}{
		"ACC-E23 a service account finds the tenant of its own namespace": {
			user: "system:serviceaccount:payments:gitops", homes: []string{"default"}, want: []string{"payments"}},
		"ACC-E24 if the namespace of the kubeconfig is gone, the error names it": {
			user: "alice", homes: []string{"pay-old", "default"}, lost: "or is not yours (pay-old): name a root"},
		"a user with a namespace": {user: "alice", homes: []string{"payments"}, want: []string{"payments"}},
		"a user without one":      {user: "alice", homes: []string{"default"}, lost: "as those of a user never do: name a root"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := gather.FindTops(t.Context(), asUser(t, c.user), c.homes, "name a root")
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if c.lost == "" && err != nil || c.lost != "" && (err == nil || !strings.Contains(err.Error(), c.lost)) {
				t.Errorf("got %v, want %q in it", err, c.lost)
			}
		})
	}
}
