package tenants_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

var _ = Describe("the ClusterRole of users", Ordered, ContinueOnFailure, SpecPriority(1), func() {
	var w *devcluster.World

	BeforeAll(func(ctx SpecContext) {
		w = ownWorld(ctx, devcluster.Options{}, "r08", "r09")
	})

	with := func(role string) string {
		return strings.TrimRight(w.OperatorConfig, "\n") + "\naccess:\n  userClusterRole: " + role + "\n"
	}
	configure := func(ctx SpecContext, role string) {
		GinkgoHelper()
		Expect(w.Operator.Configure(ctx, with(role))).To(Succeed())
	}

	It("ACC-R08 after a change of access.userClusterRole, warren:users is recreated in the root and 20 sub-namespaces, and none names "+
		"the old role; cluster-admin is refused at load", func(ctx SpecContext) {
		f := of(w, "r08")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		all := []string{payments}
		for n := range 20 {
			all = append(all, f.own(fmt.Sprintf("sub-%02d", n)))
			f.grow(ctx, payments, all[n+1])
		}
		mark := f.Mark(ctx)
		configure(ctx, "edit")
		for _, namespace := range all {
			Eventually(func(g Gomega) {
				users := build.RoleBinding(namespace, "warren:users", "")
				g.Expect(f.Read(users)(ctx)).To(Succeed())
				g.Expect(users.RoleRef.Name).To(Equal("edit"))
			}).WithContext(ctx).Should(Succeed(), namespace)
		}
		bindings := &rbacv1.RoleBindingList{}
		Expect(f.Admin().List(ctx, bindings)).To(Succeed())
		Expect(bindings.Items).NotTo(ContainElement(HaveField("RoleRef.Name", "admin")))

		requests, err := f.Writes(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		var longest time.Duration
		for _, namespace := range all {
			longest = max(longest, without(requests, namespace))
			allowed(ctx, f.as("alice"), podsIn(namespace))
		}
		AddReportEntry("alice was without rights for at most", longest, ReportEntryVisibilityFailureOrVerbose)
		most := time.Second
		if !test.IsLong() {
			most = 10 * time.Second // other suites use the cores, too
		}
		Expect(longest).To(BeNumerically("<=", most))

		By("refusing cluster-admin, at load")
		Expect(w.Operator.Configure(ctx, with("cluster-admin"))).To(MatchError(ContainSubstring("cluster-admin")))
		users := build.RoleBinding(payments, "warren:users", "")
		Consistently(func() (string, error) { err := f.Read(users)(ctx); return users.RoleRef.Name, err }).
			WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).Should(Equal("edit"))
		configure(ctx, "edit")
	}, SpecTimeout(4*time.Minute))

	It("ACC-R09 while the ClusterRole of users is missing, UserClusterRoleMissing is reported, there is no users' binding, and sudo "+
		"works; with it, the tenant is Ready", func(ctx SpecContext) {
		f := of(w, "r09")
		payments, role := f.own("payments"), f.own("role")
		configure(ctx, role)
		f.create(ctx, f.payments().Object())
		f.says(ctx, payments, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonUserClusterRoleMissing)
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		f.Gone(ctx, build.RoleBinding(payments, "warren:users", ""))
		denied(ctx, f.as("alice"), podsIn(payments))

		f.create(ctx, build.ClusterRole(role, build.Rule("", "pods", "list")))
		f.ready(ctx, payments)
		allowed(ctx, f.as("alice"), podsIn(payments))
	}, SpecTimeout(8*time.Minute))
})

// without is how long a namespace had no binding of users: from the answer to the deletion until the answer to the creation.
func without(requests []audit.Request, namespace string) time.Duration {
	GinkgoHelper()
	answered := map[string]time.Time{}
	for _, r := range requests {
		if r.Resource == "rolebindings" && r.Namespace == namespace && r.Code < 300 &&
			(r.Name == "warren:users" || r.Verb == "create") {
			answered[r.Verb] = r.Event.StageTimestamp.Time
		}
	}
	Expect(answered).To(HaveKey("delete"), namespace)
	Expect(answered).To(HaveKey("create"), namespace)
	return answered["create"].Sub(answered["delete"])
}
