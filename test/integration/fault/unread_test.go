package fault_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/gate"
)

var _ = Describe("an operator that can't read the ClusterRole of users", func() {
	It("FLT-F51 while the operator can't read the users' ClusterRole, one edit replaces sudoers and removes a user at once; an added user "+
		"gets rights when it can be read", func(ctx SpecContext) {
		s := guarded.scene("f51")
		s.create(ctx, s.payments().Object())
		s.ready(ctx)

		s.Script(func(r gate.Request) (f gate.Fault) {
			if r.Method == http.MethodGet && r.URL.Path == "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin" {
				f.Code = http.StatusInternalServerError
			}
			return f
		})
		DeferCleanup(s.Script, (func(gate.Request) gate.Fault)(nil))
		life := s.now()
		s.kill(life) // a running operator assumes for a while that the role still exists
		Eventually(ctx, s.now).Should(BeNumerically(">", life))
		change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) {
			l.Spec.Sudoers, l.Spec.Users = build.Users(s.own("sue")), build.Users(s.own("anna"), s.own("ann"))
		})
		Eventually(ctx, s.sudoers).Should(ConsistOf(s.own("sue")), s.explain)
		Eventually(ctx, s.users).Should(ConsistOf(s.own("anna")), s.explain)

		s.Script(nil)
		Eventually(ctx, s.users).Should(ConsistOf(s.own("anna"), s.own("ann")), s.explain)
	})
})

// sudoers are the names that the ClusterRoleBinding of the tenant's sudoers binds.
func (s *scene) sudoers(ctx context.Context) ([]string, error) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "warren:sudo:" + s.own("payments")}}
	err := s.Admin().Get(ctx, client.ObjectKeyFromObject(binding), binding)
	return namesOf(binding.Subjects), err
}

// users are the names that the RoleBinding of the tenant's users binds.
func (s *scene) users(ctx context.Context) ([]string, error) {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.own("payments"), Name: "warren:users"}}
	err := s.Admin().Get(ctx, client.ObjectKeyFromObject(binding), binding)
	return namesOf(binding.Subjects), err
}

func namesOf(subjects []rbacv1.Subject) []string {
	var names []string
	for _, subject := range subjects {
		names = append(names, subject.Name)
	}
	return names
}
