package tenants_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// managers is the part of a spec that lists the managers; users does the same for users.
func managers(subjects ...v1alpha1.Subject) map[string]any {
	return map[string]any{"managers": subjects}
}

func users(subjects ...v1alpha1.Subject) map[string]any {
	return map[string]any{"users": subjects}
}

// suspended waits until the tenant reports that a service account gets nothing.
func (f *fixture) suspended(ctx context.Context, tenant string, account v1alpha1.Subject) {
	GinkgoHelper()
	lns := f.says(ctx, tenant, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonSubjectRefused)
	Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionAccessReady).Message).To(ContainSubstring(account.String()))
}

// bound is an assertion on whether a binding of the tenant names a service account.
func (f *fixture) bound(ctx context.Context, tenant string, account v1alpha1.Subject) AsyncAssertion {
	return Eventually(func() bool {
		for _, s := range f.accessSubjects(ctx, tenant) {
			if s.Namespace == account.Namespace && s.Name == account.Name {
				return true
			}
		}
		return false
	}).WithContext(ctx)
}

// remade deletes a namespace and makes another of its name, as the cluster admin.
func (f *fixture) remade(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(f.Admin().Delete(ctx, build.Namespace(name))).To(Succeed())
	f.Gone(ctx, build.Namespace(name))
	f.create(ctx, build.Namespace(name))
}

var _ = Describe("a service account", func() {
	It("ACC-S26 a ServiceAccount of a placed namespace that is listed as sudoer is SubjectRefused, and its sudo is denied, also when the "+
		"namespace is halted; bob's sudo works", func(ctx SpecContext) {
		f := of(world, "s26")
		root, mid, n := f.own("payments"), f.own("mid"), f.own("n")
		f.settle(ctx, build.Tenant(root).Users(f.own("alice")).Managers(f.own("mia")).Sudoers(f.own("bob")))
		f.grow(ctx, root, mid)
		robot := f.serviceAccount(ctx, n, "robot")
		f.label(ctx, n, v1alpha1.LabelParent, mid)
		f.Exists(ctx, build.RoleBinding(n, "warren:users", ""))
		account := build.ServiceAccount(n, "robot")
		f.set(ctx, f.as("mia"), root, sudoers(build.Users(f.own("bob"))[0], account))
		f.suspended(ctx, root, account)

		Expect(f.Admin().Delete(ctx, build.SubNamespace(root, mid))).To(Succeed())
		f.Gone(ctx, build.Namespace(mid))
		Eventually(func() string {
			c, _ := f.Reported(ctx, n, v1alpha1.ConditionHalted)
			return c.Reason
		}).WithContext(ctx).Should(Equal(string(v1alpha1.ReasonParentMissing)))
		group, nobody := f.own("payments-sudoers"), "warren:sudo:"+root
		Consistently(func() error { return podsIn(root).send(ctx, f.with(robot, nobody, group)) }).
			WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(beDenied(), "robot with sudo of the tenant in whose tree it lives")
		f.bound(ctx, root, account).Should(BeFalse())
		f.suspended(ctx, root, account)
		allowed(ctx, f.sudo("bob", "payments"), podsIn(root))
	}, SpecTimeout(8*time.Minute))

	It("ACC-S28 without webhooks, a ServiceAccount of the root is SubjectRefused as manager and as user; its token, and alice as this "+
		"account, get no LNamespace; the token lists no pods", func(ctx SpecContext) {
		f := of(world, "s28")
		root := f.own("payments")
		account := build.ServiceAccount(root, "robot")
		f.settle(ctx, build.Tenant(root).Users(f.own("alice")).Managers(f.own("mia")).Sudoers(f.own("bob")))
		robot := f.serviceAccount(ctx, root, "robot")
		f.set(ctx, f.as("mia"), root, managers(build.Users(f.own("mia"))[0], account))
		f.suspended(ctx, root, account)
		denied(ctx, f.with(robot, ""), readTenant(root), patchTenant(root, ""))
		denied(ctx, f.becoming("alice", "system:serviceaccount:"+root+":robot"), readTenant(root), patchTenant(root, ""))
		f.bound(ctx, root, account).Should(BeFalse())

		f.set(ctx, f.as("mia"), root, managers(build.Users(f.own("mia"))...))
		f.ready(ctx, root)
		f.set(ctx, f.as("mia"), root, users(build.Users(f.own("alice"))[0], account))
		f.suspended(ctx, root, account)
		denied(ctx, f.with(robot, ""), podsIn(root))
		allowed(ctx, f.as("alice"), podsIn(root))
	})

	inBothModes("ACC-S29 in a namespace that is created anew, a listed ServiceAccount is SubjectRefused, also after another change; "+
		"listed again as sudoer, it can use sudo, and has no other right", "s29", func(ctx SpecContext, f *fixture) {
		root, ci := f.own("payments"), f.own("ci")
		account := build.ServiceAccount(ci, "deployer")
		listed := f.serviceAccount(ctx, ci, "deployer")
		f.settle(ctx, build.Tenant(root).UserSubjects(account).Managers(f.own("mia")).ManagerSubjects(account).
			Sudoers(f.own("bob")).SudoerSubjects(account))
		group, nobody := f.own("payments-sudoers"), "warren:sudo:"+root
		allowed(ctx, f.with(listed, nobody, group), podsIn(root))
		allowed(ctx, f.with(listed, ""), podsIn(root), readTenant(root))

		By("somebody makes the namespace anew")
		f.remade(ctx, ci)
		stranger := f.serviceAccount(ctx, ci, "deployer")
		f.suspended(ctx, root, account)
		soonDenied(ctx, f.with(stranger, nobody, group), podsIn(root))
		soonDenied(ctx, f.with(stranger, ""), podsIn(root), readTenant(root))
		f.bound(ctx, root, account).Should(BeFalse())

		By("a write of something else, which doesn't make it the one that was meant")
		f.set(ctx, f.as("mia"), root, map[string]any{"allowCascadingDeletion": true})
		f.suspended(ctx, root, account)
		denied(ctx, f.with(stranger, nobody, group), podsIn(root))

		By("a manager who takes it off and lists it again")
		f.set(ctx, f.as("mia"), root, map[string]any{"users": []any{}, "managers": build.Users(f.own("mia")),
			"sudoers": build.Users(f.own("bob"))})
		f.ready(ctx, root)
		f.set(ctx, f.as("mia"), root, sudoers(build.Users(f.own("bob"))[0], account))
		f.ready(ctx, root)
		allowed(ctx, f.with(stranger, nobody, group), podsIn(root))
		denied(ctx, f.with(stranger, ""), podsIn(root), readTenant(root))
	})

	It("ACC-S30 a ServiceAccount that is listed while its namespace is missing is SubjectRefused, also after another user creates the "+
		"namespace; bob's sudo works", func(ctx SpecContext) {
		f := of(world, "s30")
		root, ci := f.own("payments"), f.own("ci")
		account := build.ServiceAccount(ci, "deployer")
		f.settle(ctx, build.Tenant(root).Managers(f.own("mia")).Sudoers(f.own("bob")))
		f.set(ctx, f.as("mia"), root, sudoers(build.Users(f.own("bob"))[0], account))
		f.suspended(ctx, root, account)
		stranger := f.serviceAccount(ctx, ci, "deployer")
		group, nobody := f.own("payments-sudoers"), "warren:sudo:"+root
		Consistently(func() error { return podsIn(root).send(ctx, f.with(stranger, nobody, group)) }).
			WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(beDenied())
		f.suspended(ctx, root, account)
		allowed(ctx, f.sudo("bob", "payments"), podsIn(root))
	})

	It("ACC-S31 a ServiceAccount whose namespace joins and leaves the tree is still SubjectRefused, and can't use "+
		"sudo", func(ctx SpecContext) {
		f := of(world, "s31")
		root, n := f.own("payments"), f.own("n")
		account := build.ServiceAccount(n, "robot")
		robot := f.serviceAccount(ctx, n, "robot")
		f.settle(ctx, build.Tenant(root).Users(f.own("alice")).Managers(f.own("mia")).Sudoers(f.own("bob")).SudoerSubjects(account))
		group, nobody := f.own("payments-sudoers"), "warren:sudo:"+root
		allowed(ctx, f.with(robot, nobody, group), podsIn(root))
		f.label(ctx, n, v1alpha1.LabelParent, root)
		f.suspended(ctx, root, account)
		f.label(ctx, n, v1alpha1.LabelParent, nil)
		Eventually(func() string {
			namespace := &corev1.Namespace{}
			Expect(f.Admin().Get(ctx, client.ObjectKey{Name: n}, namespace)).To(Succeed())
			return namespace.Annotations[v1alpha1.AnnotationAncestry]
		}).WithContext(ctx).Should(BeEmpty(), "the namespace has left")
		soonDenied(ctx, f.with(robot, nobody, group), podsIn(root))
		Consistently(func() error { return podsIn(root).send(ctx, f.with(robot, nobody, group)) }).
			WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(beDenied())
		f.suspended(ctx, root, account)
	})
})
