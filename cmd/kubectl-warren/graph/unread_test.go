package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
)

// managerOf returns a client of a manager of tenant orders, who may get its LNamespace and nothing else.
func managerOf(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	orders := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "orders", UID: "u"}, Spec: v1alpha1.LNamespaceSpec{
		Managers: []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "mia"}}}}
	refused := apierrors.NewForbidden(corev1.Resource("any"), "x", errors.New("no right"))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(orders).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			if _, isTenant := object.(*v1alpha1.LNamespace); isTenant && key.Name == "orders" {
				return api.Get(ctx, key, object)
			}
			return refused
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused },
	}).Build()
}

func TestManager(t *testing.T) {
	api := managerOf(t)
	for name, read := range map[string]func() (graph.Facts, error){
		"found by the manager's rights": func() (graph.Facts, error) { return graph.ReadFound(t.Context(), api, []string{"orders"}) },
		"named":                         func() (graph.Facts, error) { return graph.Read(t.Context(), api, "orders") },
	} {
		t.Run("WEB-G11 to a manager who may read the LNamespace and not its namespace, the tenant is drawn once, "+
			"as a tenant: "+name, func(t *testing.T) {
			facts, err := read()
			if err != nil {
				t.Fatal(err)
			}
			f := buildForest(t, facts)
			if len(f.Trees) != 1 || f.Trees[0].Kind != graph.KindTenant || f.Counts.Tenants != 1 || f.Trees[0].People == nil {
				t.Errorf("got %d trees with %d tenants: %+v", len(f.Trees), f.Counts.Tenants, f.Trees)
			}
		})
	}
	t.Run("SUB-X25 tree shows a manager the root of the tenant by its name; "+
		"a name without an LNamespace that the manager may read is an error", func(t *testing.T) {
		view, _, unseen, err := gather.Walk(t.Context(), api, []string{"orders"})
		if err != nil || view.Forest.Namespace("orders") == nil || len(unseen) != 1 {
			t.Errorf("orders: %v, unseen %q", err, unseen)
		}
		if _, _, _, err := gather.Walk(t.Context(), api, []string{"ordres"}); err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("ordres: %v", err)
		}
	})
}
