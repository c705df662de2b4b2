package hierarchy

import (
	"slices"
	"strconv"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/namespaces"
)

func TestHoldersAreFoundBesideManyRoles(t *testing.T) {
	t.Run("HIER-L8 who holds a namespace by a ClusterRole is recorded also where the namespace has fifty Roles", func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := rbacv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		admin := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "admin"}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"*"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}}}}
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "legacy", Name: "own"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "alice"}}}
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(admin, binding)
		for i := range mostRoles {
			api.WithObjects(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "legacy", Name: "role-" + strconv.Itoa(i)}})
		}
		r := &Reconciler{Namespaces: &namespaces.Writer{Live: api.Build()}}
		holders, err := r.gatherHolders(t.Context(), "legacy", &forest.Tenant{Listed: map[string]bool{"User alice": true}})
		if err != nil || !slices.Equal(holders, []string{"User alice"}) {
			t.Errorf("got %v, %v: alice holds the namespace by ClusterRole admin, and would keep it after her tenant has dropped her", holders, err)
		}
	})
}
