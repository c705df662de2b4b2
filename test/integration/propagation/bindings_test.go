package propagation_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// binding makes a RoleBinding of users to a ClusterRole.
func binding(namespace, name, clusterRole string, users ...string) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
	}
	for _, user := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
	}
	return b
}

var _ = Describe("a RoleBinding to a Role", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	It("PROP-I11 a RoleBinding is copied with its Role; in b, which has another such Role, CopyRejected has \"is not a copy of the "+
		"Role\"; after that is deleted, b gets both", func(ctx SpecContext) {
		stronger := build.Role(f.b, "release", "*")
		f.create(ctx, stronger)
		role := build.Role(f.acme, "release", "get")
		bound := binding(f.acme, "releasers", "release", "eve")
		bound.RoleRef.Kind = "Role"
		f.create(ctx, role, build.Source(bound, v1alpha1.ModeUpdate))
		f.copied(ctx, role, f.a, f.a1)
		f.copied(ctx, bound, f.a, f.a1)
		Eventually(ctx, f.events).WithArguments(bound, v1alpha1.ReasonCopyRejected).
			Should(ContainElement(ContainSubstring("Role \"release\" of " + f.b + " is not a copy of the Role of " + f.acme)))
		f.staysAbsent(ctx, bound, f.b)

		f.remove(ctx, stronger)
		f.copied(ctx, role, f.b)
		f.copied(ctx, bound, f.b)
	})

	It("PROP-I13 when a Role is deleted, copies of its RoleBinding are too; where another Role takes the name, CopyRejected is sent; "+
		"where the Role is copied anew, the RoleBinding is too", func(ctx SpecContext) {
		role := build.Role(f.acme, "release", "get")
		bound := binding(f.acme, "releasers", "release", "eve")
		bound.RoleRef.Kind = "Role"
		f.create(ctx, role, build.Source(bound, v1alpha1.ModeUpdate))
		f.copied(ctx, role, f.a, f.a1, f.b)
		f.copied(ctx, bound, f.a, f.a1, f.b)

		f.remove(ctx, role)
		f.absent(ctx, bound, f.a, f.a1, f.b)
		f.create(ctx, build.Role(f.a, "release", "*"))
		f.staysAbsent(ctx, bound, f.a)
		Eventually(ctx, f.events).WithArguments(bound, v1alpha1.ReasonCopyRejected).
			Should(ContainElement(ContainSubstring("is not a copy of the Role of " + f.acme)))

		By("the Role comes back")
		f.create(ctx, build.Role(f.acme, "release", "get"))
		f.copied(ctx, bound, f.b)
		f.staysAbsent(ctx, bound, f.a)
	})

	It("PROP-I14 a RoleBinding that names a Role is not copied in mode create: CopyRejected "+
		"has \"it can be copied only in mode update\"", func(ctx SpecContext) {
		role := build.Role(f.acme, "release", "get")
		bound := binding(f.acme, "releasers", "release", "eve")
		bound.RoleRef.Kind = "Role"
		f.create(ctx, role, build.Source(bound, v1alpha1.ModeCreate))
		f.copied(ctx, role, f.a, f.a1, f.b)
		Eventually(ctx, f.events).WithArguments(bound, v1alpha1.ReasonCopyRejected).
			Should(ContainElement(ContainSubstring("it can be copied only in mode update")))
		f.staysAbsent(ctx, bound, f.a, f.a1, f.b)
	})

	It("PROP-I12 a new RoleBinding to a Role that has copies takes one metadata GET of a "+
		"Role for each of its copies; no GET of these", func(ctx SpecContext) {
		role := build.Role(f.acme, "release", "get")
		f.create(ctx, role)
		f.copied(ctx, role, f.a, f.a1, f.b)
		roles, bindings := f.ledger(ctx, "roles"), f.ledger(ctx, "rolebindings")
		bound := binding(f.acme, "releasers", "release", "eve")
		bound.RoleRef.Kind = "Role"
		f.create(ctx, build.Source(bound, v1alpha1.ModeUpdate))
		f.copied(ctx, bound, f.a, f.a1, f.b)
		Expect(roles.gets(ctx, f.acme, f.a, f.a1, f.b)).To(Equal(3), roles.String)
		Expect(bindings.gets(ctx, f.a, f.a1, f.b)).To(BeZero(), bindings.String)
	})

	It("PROP-I12 a RoleBinding of a is copied to a1 if its Role came to both from acme; it "+
		"is not if a1 has a stronger Role of its own", func(ctx SpecContext) {
		role := build.Role(f.acme, "release", "get")
		f.create(ctx, role)
		f.copied(ctx, role, f.a, f.a1)
		bound := binding(f.a, "releasers", "release", "eve")
		bound.RoleRef.Kind = "Role"
		f.create(ctx, build.Source(bound, v1alpha1.ModeUpdate))
		f.copied(ctx, bound, f.a1)

		own := build.Role(f.a, "own", "get")
		f.create(ctx, build.Role(f.a1, "own", "*"), own)
		other := binding(f.a, "owners", "own", "eve")
		other.RoleRef.Kind = "Role"
		f.create(ctx, build.Source(other, v1alpha1.ModeUpdate))
		Eventually(ctx, f.events).WithArguments(other, v1alpha1.ReasonCopyRejected).
			Should(ContainElement(ContainSubstring("Role \"own\" of " + f.a1 + " is not a copy of the Role of " + f.a)))
		f.staysAbsent(ctx, other, f.a1)
	})
})
