package doctor

import (
	"context"
	"errors"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// An account that may try no tenant tries what makes no namespace.
func TestProbeWithoutTheRightToCreateTenants(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "lnamespaces"}, probeName, errors.New("no right"))
	away := apierrors.NewInternalError(errors.New(`failed calling webhook "subnamespaces.tenancy.warren.dev": refused`))
	for name, c := range map[string]struct {
		tenant, sub error
		want        Status
		asked       []string
	}{
		"it may create tenants":          {nil, away, OK, []string{"/warren-doctor"}},
		"it may create SubNamespaces":    {forbidden, nil, OK, []string{"/warren-doctor", "default/warren-doctor"}},
		"then the webhooks must answer":  {forbidden, away, Error, []string{"/warren-doctor", "default/warren-doctor"}},
		"it may create neither of these": {forbidden, forbidden, Warning, []string{"/warren-doctor", "default/warren-doctor"}},
	} {
		t.Run("SEC-X58 doctor asks the webhooks with a SubNamespace in default, by dry run, if the account may create no LNamespaces: "+
			name, func(t *testing.T) {
			var asked []string
			scheme := runtime.NewScheme()
			if err := errors.Join(admissionv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&admissionv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.OperatorName}}).
				WithInterceptorFuncs(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, object client.Object,
					options ...client.CreateOption) error {
					if !slices.Contains(options, client.CreateOption(client.DryRunAll)) {
						t.Error("no dry run")
					}
					asked = append(asked, object.GetNamespace()+"/"+object.GetName())
					if object.GetNamespace() == "" {
						return c.tenant
					}
					return c.sub
				}}).Build()
			if got := (Patient{API: api}).checkWebhook(t.Context()); got.Status != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
			if !slices.Equal(asked, c.asked) {
				t.Errorf("asked %q, want %q", asked, c.asked)
			}
		})
	}
}
