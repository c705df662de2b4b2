package access

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// onlyPayments has one LNamespace, payments.
type onlyPayments struct{ client.Reader }

func (onlyPayments) Get(_ context.Context, name client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if name.Name != "payments" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "lnamespaces"}, name.Name)
	}
	return nil
}

func TestOrphans(t *testing.T) {
	payments := grants.Reference(&v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "u1"}})
	for name, c := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"ACC-R32 an object of a tenant that exists is claimed":                  {map[string]string{v1alpha1.LabelTenant: "payments"}, true},
		"ACC-R32 an object of a missing tenant is not claimed by another owner": {map[string]string{v1alpha1.LabelTenant: "shop"}, false},
		"ACC-R32 a self pair is claimed by an owner that exists":                {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			binding := &rbacv1.ClusterRoleBinding{}
			binding.Labels, binding.OwnerReferences = c.labels, []metav1.OwnerReference{payments}
			if claimed, err := isClaimed(t.Context(), onlyPayments{}, binding); err != nil || claimed != c.want {
				t.Errorf("claimed %t: %v", claimed, err)
			}
		})
	}
}
