package sub

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

func clusterOf(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// refused is the error of a request while the API server restarts.
var refused = &url.Error{Op: "Get", URL: "https://127.0.0.1:6443", Err: errors.New("connection refused")}

func TestWaitOutlastsAnAPIServer(t *testing.T) {
	made := New("payments", "pay-web", v1alpha1.SubNamespaceSpec{})
	v1alpha1.SetCondition(&made.Status.Conditions, 0, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNamespaceActive, "")
	for name, c := range map[string]struct {
		failures int
		ends     bool
	}{
		"SUB-X17 --wait waits on after one read that fails":                {1, true},
		"SUB-X17 --wait ends with the error if all reads fail for minutes": {10_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures := c.failures
				api := interceptor.NewClient(clusterOf(t, made), interceptor.Funcs{
					Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
						if failures--; failures >= 0 {
							return refused
						}
						return api.Get(ctx, key, object, o...)
					},
				})
				if _, err := awaitReady(t.Context(), api, made); c.ends && err != nil || !c.ends && !errors.Is(err, refused) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestWaitForTheEndSaysWhatRemains(t *testing.T) {
	t.Run("SUB-D16 --wait writes what the Namespace still holds once for each change", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reads := 0
			api := interceptor.NewClient(clusterOf(t), interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
					namespace, is := object.(*corev1.Namespace)
					if !is {
						return notFound("subnamespaces")
					}
					if reads++; reads > 60 {
						return notFound("namespaces")
					}
					namespace.Name, namespace.UID, namespace.DeletionTimestamp = "pay-web", "uid", new(metav1.Now())
					remaining := "configmaps. has 2 resource instances"
					if reads > 30 {
						remaining = "configmaps. has 1 resource instances"
					}
					namespace.Status.Conditions = []corev1.NamespaceCondition{
						{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: remaining},
						{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "all is well"},
					}
					return nil
				},
			})
			owned := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "pay-web", UID: "uid"}}
			var out strings.Builder
			if err := awaitGone(t.Context(), api, New("payments", "pay-web", v1alpha1.SubNamespaceSpec{}), owned, &out); err != nil {
				t.Fatal(err)
			}
			const want = "Waiting until namespace pay-web has ended: configmaps. has 2 resource instances\n" +
				"Waiting until namespace pay-web has ended: configmaps. has 1 resource instances\n"
			if out.String() != want {
				t.Errorf("got:\n%s", out.String())
			}
		})
	})
}

func notFound(resource string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "pay-web")
}

func TestABoundNamespaceWithoutItsSubNamespace(t *testing.T) {
	api := clusterOf(t, build.Child("pay-web", "payments", v1alpha1.LabelBound, v1alpha1.True), build.Child("pay-db", "payments"))
	t.Run("SUB-X18 create pay-web -n payments creates the missing SubNamespace "+
		"of bound pay-web; with -n shop, the name already exists", func(t *testing.T) {
		if err := checkNameFree(t.Context(), api, "payments", "pay-web"); err != nil {
			t.Error(err)
		}
		for _, taken := range [][2]string{{"shop", "pay-web"}, {"payments", "pay-db"}} {
			if err := checkNameFree(t.Context(), api, taken[0], taken[1]); err == nil || !strings.Contains(err.Error(), "already exists") {
				t.Errorf("%s in %s: %v", taken[1], taken[0], err)
			}
		}
	})
	t.Run("SUB-X18 delete of a bound namespace whose SubNamespace is missing "+
		"is an error that names the command which creates it", func(t *testing.T) {
		_, _, err := findSub(t.Context(), api, "", "pay-web")
		const want = "namespace pay-web is bound, but its SubNamespace payments/pay-web is missing: " +
			"kubectl warren create pay-web -n payments puts it back; then give this command again"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}
