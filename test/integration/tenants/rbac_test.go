package tenants_test

import (
	"context"
	"maps"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// longest is a name that is too long for a kubeconfig file, so a case asks the authorizer about it.
var longest = strings.Repeat("x", 256)

// awkwardNames are the user names of ACC-R10. escaped has the names of their pairs.
var awkwardNames = []string{"https://acc/1#2%3", "https:~1~1acc", "a/b", "a~1b", "~", "Zoë Müller", "..", "Bob", "bob"}

var escaped = map[string]string{
	"https://acc/1#2%3": "https:~1~1acc~11#2~23", "https:~1~1acc": "https:~01~01acc", "a/b": "a~1b", "a~1b": "a~01b", "~": "~0",
	"Zoë Müller": "Zoë Müller", "..": "..", "Bob": "Bob", "bob": "bob", longest: longest,
}

// writesOf lists the operator's writes of one object since a mark that succeeded.
func (f *fixture) writesOf(ctx context.Context, since audit.Position, resource, name string) func() ([]string, error) {
	return func() ([]string, error) {
		writes, err := f.Writes(ctx, since)
		var found []string
		for _, w := range writes {
			if w.Resource == resource && w.Name == name && w.Code < 300 { // if two create it at once, the API server refuses one
				found = append(found, w.String())
			}
		}
		return found, err
	}
}

var _ = Describe("the access objects", func() {
	It("ACC-R01 the access objects of the fixture equal 2.4 field by field, with the copies in pay-web, and there are no others; the "+
		"files of docs/resource-samples equal them", func(ctx SpecContext) {
		f := of(world, "r01")
		f.create(ctx, f.sampleTenants()...)
		f.ready(ctx, f.own("payments"))
		f.ready(ctx, f.own("shop"))
		f.grow(ctx, f.own("payments"), f.own("pay-web"))
		var got map[string]client.Object
		Eventually(func() map[string]client.Object {
			got = plain(f.granted(ctx))
			return got
		}).WithContext(ctx).Should(BeComparableTo(f.everything(ctx)), "the pair that two tenants share has both owners")

		maps.DeleteFunc(got, func(_ string, object client.Object) bool {
			return object.GetNamespace() == f.own("pay-web") || object.GetLabels()[v1alpha1.LabelTenant] == f.own("shop")
		})
		Expect(plain(f.samples(ctx))).To(BeComparableTo(got))
	})

	It("ACC-R02 an access object that a cluster admin edits, deletes or takes an owner from is soon as before, with Event DriftRepaired; "+
		"each tenant that owns it writes once", func(ctx SpecContext) {
		f := of(world, "r02")
		f.settle(ctx, f.payments(), f.shop())
		payments, shop, bob := f.own("payments"), f.own("shop"), f.own("bob")
		want := plain(f.specified(ctx))
		Eventually(f.references(ctx, bob)).WithContext(ctx).Should(ConsistOf(payments, shop))
		back := func() {
			GinkgoHelper()
			Eventually(func() map[string]client.Object { return plain(f.granted(ctx)) }).WithContext(ctx).Should(BeComparableTo(want))
		}
		mark := f.Mark(ctx)

		role := build.ClusterRole("warren:sudo:" + payments)
		f.Exists(ctx, role)
		role.Rules[0].ResourceNames = append(role.Rules[0].ResourceNames, "system:masters")
		Expect(f.Admin().Update(ctx, role)).To(Succeed())
		back()
		f.event(ctx, payments, v1alpha1.ReasonDriftRepaired, "ClusterRole warren:sudo:"+payments)

		binding := build.ClusterRoleBinding("warren:edit:"+payments, "")
		f.Exists(ctx, binding)
		binding.Subjects = append(binding.Subjects, build.RBACUser(f.own("eve")))
		Expect(f.Admin().Update(ctx, binding)).To(Succeed())
		back()
		f.event(ctx, payments, v1alpha1.ReasonDriftRepaired, "ClusterRoleBinding warren:edit:"+payments)

		self := build.ClusterRoleBinding("warren:self:"+bob, "")
		Expect(f.Admin().Delete(ctx, self)).To(Succeed())
		back() // with both owners: both tenants have noticed the deletion
		Eventually(f.writesOf(ctx, mark, "clusterrolebindings", self.Name)).WithContext(ctx).Should(HaveLen(2), "one of each tenant")

		f.Exists(ctx, self)
		self.OwnerReferences = self.OwnerReferences[:1]
		Expect(f.Admin().Update(ctx, self)).To(Succeed())
		back()
		Eventually(f.writesOf(ctx, mark, "clusterrolebindings", self.Name)).WithContext(ctx).Should(HaveLen(3))
		Consistently(f.writesOf(ctx, mark, "clusterrolebindings", self.Name)).WithContext(ctx).
			WithTimeout(test.Quiet(soon)).WithPolling(time.Second / 2).Should(HaveLen(3))
		Expect(f.writesOf(ctx, mark, "clusterroles", role.Name)()).To(HaveLen(1))
		Expect(f.writesOf(ctx, mark, "clusterrolebindings", binding.Name)()).To(HaveLen(1))
		Eventually(func(g Gomega) {
			var told []string
			for _, tenant := range []string{payments, shop} {
				messages, err := f.Messages(build.Tenant(tenant).Object(), v1alpha1.ReasonDriftRepaired)(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				told = append(told, messages...)
			}
			g.Expect(told).To(ContainElement(ContainSubstring("ClusterRoleBinding warren:self:" + bob)))
		}).WithContext(ctx).Should(Succeed())
	})

	It("ACC-R03 a user's ClusterRole of the pair's name gives Conflict, is unchanged and never bound; users and managers get their "+
		"rights; after its deletion sudo works", func(ctx SpecContext) {
		f := of(world, "r03")
		name := "warren:sudo:" + f.own("payments")
		foreign := build.ClusterRole(name, build.Rule("*", "*", "*"))
		f.create(ctx, foreign)
		f.create(ctx, f.payments().Object())
		lns := f.says(ctx, f.own("payments"), v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonConflict)
		Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionAccessReady).Message).To(ContainSubstring("ClusterRole " + name))
		allowed(ctx, f.as("alice"), podsIn(f.own("payments")))
		allowed(ctx, f.as("mia"), readTenant(f.own("payments")))
		denied(ctx, f.sudo("bob", "payments"), podsIn(f.own("payments")))
		Consistently(func(g Gomega) {
			bindings := &rbacv1.ClusterRoleBindingList{}
			g.Expect(f.Admin().List(ctx, bindings)).To(Succeed())
			g.Expect(bindings.Items).NotTo(ContainElement(HaveField("RoleRef.Name", name)))
		}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Succeed())
		now := build.ClusterRole(name)
		f.Exists(ctx, now)
		Expect(now).To(BeComparableTo(foreign))

		Expect(f.Admin().Delete(ctx, foreign)).To(Succeed())
		f.ready(ctx, f.own("payments"))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(f.own("payments")))
	})

	It("ACC-R04 a user's ClusterRole in the place of a self pair gives Conflict, and nobody is bound to it; that sudoer can't use sudo, "+
		"the others can", func(ctx SpecContext) {
		f := of(world, "r04")
		carol := f.own("carol")
		foreign := build.Labelled(build.ClusterRole("warren:self:"+carol, build.Rule("", "users", "impersonate")),
			v1alpha1.LabelManagedBy, "warren", v1alpha1.LabelAccess, "self")
		f.create(ctx, foreign)
		f.create(ctx, f.payments().Sudoers(carol).Object())
		lns := f.says(ctx, f.own("payments"), v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonConflict)
		Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionAccessReady).Message).
			To(ContainSubstring("ClusterRole warren:self:" + carol))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(f.own("payments")))
		denied(ctx, f.sudo("carol", "payments"), podsIn(f.own("payments")))
		denied(ctx, f.becoming("carol", "admin"), podsIn(f.own("payments")))
		f.Gone(ctx, build.ClusterRoleBinding("warren:self:"+carol, ""))
	})

	// The LNamespace is made by a user who may make one and nothing else.
	It("ACC-R05 in mode Legacy, a ClusterRoleBinding of the group gives GroupInUse, no sudo pair and no nodes; after its deletion, sudo "+
		"is granted", func(ctx SpecContext) {
		f := of(world, "r05")
		platform := f.own("platform")
		bound := build.ClusterRoleBinding(f.own("standing"), "cluster-admin", build.RBACGroup(platform+"-sudoers"))
		f.create(ctx, bound,
			build.ClusterRole(f.own("creator"), build.Rule(v1alpha1.Domain, "lnamespaces", "create")),
			build.ClusterRoleBinding(f.own("creator"), f.own("creator"), build.RBACUser(f.own("carol"))))
		allowed(ctx, f.as("carol"), making(build.Annotated(build.Tenant(platform).Sudoers(f.own("carol")).Object(),
			v1alpha1.AnnotationCreator, f.own("carol")), "LNamespace"))
		lns := f.says(ctx, platform, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonGroupInUse)
		Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionAccessReady).Message).
			To(ContainSubstring("group " + platform + "-sudoers or user warren:sudo:" + platform + " was already bound outside of this tenant"))
		f.Gone(ctx, pair("warren:sudo:"+platform)...)
		denied(ctx, f.sudo("carol", "platform"), listing(&corev1.NodeList{}, "nodes"))

		Expect(f.Admin().Delete(ctx, bound)).To(Succeed())
		f.ready(ctx, platform)
		allowed(ctx, f.sudo("carol", "platform"), podsIn(platform))
		denied(ctx, f.sudo("carol", "platform"), listing(&corev1.NodeList{}, "nodes"))
	})

	It("ACC-R31 a tenant that is made after a binding with the name of its pair and without labels is not Granted until that is deleted",
		func(ctx SpecContext) {
			f := of(world, "r31")
			later := f.own("later")
			planted := build.ClusterRoleBinding("warren:sole:"+later+":"+f.own("mallory"), "cluster-admin", build.RBACUser(f.own("mallory")))
			f.create(ctx, planted)
			f.create(ctx, build.Tenant(later).Sudoers(f.own("carol")).Object())
			lns := f.says(ctx, later, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonConflict)
			Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionAccessReady).Message).
				To(HavePrefix("ClusterRoleBinding " + planted.Name + " has a name of the operator's for this tenant, but not its labels"))
			Eventually(ctx, f.Messages(planted, "")).Should(ContainElement(ContainSubstring("for LNamespace " + later)))

			Expect(f.Admin().Delete(ctx, planted)).To(Succeed())
			f.ready(ctx, later)
		}, SpecTimeout(5*time.Minute))

	It("ACC-R19 a ClusterRoleBinding of user warren:sudo:platform gives GroupInUse and no sudo pair; after its deletion, sudo is "+
		"granted", func(ctx SpecContext) {
		f := of(world, "r19")
		platform := f.own("platform")
		bound := build.ClusterRoleBinding(f.own("standing"), "cluster-admin", build.RBACUser("warren:sudo:"+platform))
		f.create(ctx, bound)
		f.create(ctx, build.Tenant(platform).Sudoers(f.own("carol")).SudoerSubjects(build.Group(f.own("oncall"))).Object())
		f.says(ctx, platform, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonGroupInUse)
		f.Gone(ctx, pair("warren:sudo:"+platform)...)
		denied(ctx, f.becoming("carol", "warren:sudo:"+platform), listing(&corev1.NodeList{}, "nodes"))

		Expect(f.Admin().Delete(ctx, bound)).To(Succeed())
		f.ready(ctx, platform)
		allowed(ctx, f.becoming("carol", "warren:sudo:"+platform, platform+"-sudoers"), podsIn(platform))
		denied(ctx, f.becoming("carol", "warren:sudo:"+platform), listing(&corev1.NodeList{}, "nodes"))
	})

	It("ACC-R06 a RoleBinding of the group in infra before the first sudoer gives GroupInUse and no sudo pair; after its deletion sudo "+
		"works in the tenant, not in infra; ACC-R18 another RoleBinding of it gets an Event, and sudo still waits when the first is deleted; "+
		"after the second, sudo works", func(ctx SpecContext) {
		f := of(world, "r06")
		other, infra := f.own("other"), f.own("infra")
		here := build.RoleBinding(infra, "standing", "admin", build.RBACGroup(other+"-sudoers"))
		f.create(ctx, build.Namespace(infra), here)
		f.settle(ctx, build.Tenant(other))
		f.set(ctx, f.Admin(), other, sudoers(build.Users(f.own("carol"))...))
		f.says(ctx, other, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonGroupInUse)
		f.Gone(ctx, pair("warren:sudo:"+other)...)
		denied(ctx, f.sudo("carol", "other"), podsIn(other), podsIn(infra))
		Expect(f.get(ctx, other).Status.SudoGrantedAt).To(BeNil())
		By("ACC-R18 another one that is made before the first one goes")
		later := build.RoleBinding(infra, "later", "admin", build.RBACGroup(other+"-sudoers"))
		f.create(ctx, later)
		Expect(f.Admin().Delete(ctx, here)).To(Succeed())
		Eventually(ctx, f.Messages(later, "")).Should(ContainElement(ContainSubstring("names group " + other + "-sudoers")))
		f.Gone(ctx, pair("warren:sudo:"+other)...)
		Expect(f.Admin().Delete(ctx, later)).To(Succeed())
		f.ready(ctx, other)
		allowed(ctx, f.sudo("carol", "other"), podsIn(other))
		soonDenied(ctx, f.sudo("carol", "other"), podsIn(infra)) // the authorizer learns of RoleBindings by a watch of their own
	}, SpecTimeout(5*time.Minute))

	It("ACC-R14 after the first grant, a user of shop may not bind the group; bindings by a cluster admin withdraw nothing, also when "+
		"bob is removed and listed again", func(ctx SpecContext) {
		f := of(world, "r14")
		payments, shop, bob := f.own("payments"), f.own("shop"), f.own("bob")
		f.settle(ctx, f.payments(), f.shop())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		Eventually(func() any { return f.get(ctx, payments).Status.SudoGrantedAt }).WithContext(ctx).ShouldNot(BeNil())
		group := build.RBACGroup(payments + "-sudoers")

		By("a user of another tenant")
		hello := build.RoleBinding(shop, "hello", "view", group)
		Expect(f.as("dave").Create(ctx, hello.DeepCopy())).To(MatchError(ContainSubstring(
			"subjects: Group " + payments + "-sudoers is what sudoers become, and only the operator and cluster administrators bind it")))
		By("a cluster admin")
		f.create(ctx, hello, build.ClusterRoleBinding(f.own("standing"), "view", group))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(shop)) // this right is from the cluster admin

		By("a manager who takes all sudoers off, and lists one again")
		f.set(ctx, f.as("mia"), payments, sudoers())
		f.ready(ctx, payments)
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		f.set(ctx, f.as("mia"), payments, sudoers(build.Users(bob)...))
		f.ready(ctx, payments)
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		stop := throughout(ctx, f.sudo("bob", "payments"), podsIn(payments))
		Consistently(func() v1alpha1.Reason {
			c := v1alpha1.FindCondition(f.get(ctx, payments).Status.Conditions, v1alpha1.ConditionAccessReady)
			return v1alpha1.Reason(c.Reason)
		}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Equal(v1alpha1.ReasonGranted))
		Expect(stop()).To(Succeed())
	})

	It("ACC-R07 of a tenant with empty lists, only warren:sudoers has a subject, its group; nobody gets anything, and no rule lacks "+
		"resourceNames, except that on the reason", func(ctx SpecContext) {
		f := of(world, "r07")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		f.set(ctx, f.Admin(), payments, map[string]any{"users": []any{}, "managers": []any{}, "sudoers": []any{}})
		f.ready(ctx, payments)
		group := build.RBACGroup(payments + "-sudoers")
		want := map[string][]rbacv1.Subject{
			"warren:users": nil, "warren:sudoers": {group},
		}
		got := map[string][]rbacv1.Subject{}
		for _, object := range f.granted(ctx) {
			switch o := object.(type) {
			case *rbacv1.RoleBinding:
				got[o.Name] = o.Subjects
			case *rbacv1.ClusterRoleBinding:
				if !strings.HasPrefix(o.Name, "warren:self:") { // self pairs are being deleted
					got[o.Name] = o.Subjects
				}
			case *rbacv1.ClusterRole:
				for _, rule := range o.Rules {
					if rule.Resources[0] != "userextras/tenancy.warren.dev/reason" {
						Expect(rule.ResourceNames).NotTo(BeEmpty(), "%s: %v", o.Name, rule)
					}
				}
			}
		}
		Expect(got).To(Equal(want))
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		for _, person := range []string{"alice", "devi", "mia", "bob", "carol"} {
			soonDenied(ctx, f.as(person), podsIn(payments), readTenant(payments))
			denied(ctx, f.sudo(person, "payments"), podsIn(payments))
		}
	})

	It("ACC-R10 ten awkward names give ten pairs, named as in 2.4, each for one user; each may impersonate itself and the group, and "+
		"none another", func(ctx SpecContext) {
		f := of(world, "r10")
		payments, group := f.own("payments"), f.own("payments-sudoers")
		names := append([]string{longest}, awkwardNames...)
		f.settle(ctx, build.Tenant(payments).Sudoers(names...))
		for _, name := range names {
			role, binding := build.ClusterRole("warren:self:"+escaped[name]), build.ClusterRoleBinding("warren:self:"+escaped[name], "")
			f.Exists(ctx, role, binding)
			Expect(role.Rules).To(Equal([]rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{name}, Verbs: []string{"impersonate"}},
			}))
			Expect(binding.Subjects).To(ConsistOf(build.RBACUser(name)))
			Expect(role.Annotations).To(HaveKeyWithValue("tenancy.warren.dev/user", name))
			for _, other := range names {
				may := Equal(name == other)
				Eventually(f.mayImpersonate(ctx, name, "users", other)).WithContext(ctx).Should(may, "%q as %q", name, other)
			}
			Eventually(f.mayImpersonate(ctx, name, "groups", group)).WithContext(ctx).Should(BeTrue(), "%q as %s", name, group)
		}
		for _, name := range awkwardNames {
			allowed(ctx, f.Sudo(name, payments), podsIn(payments))
		}
	})

	It("ACC-R12 for a tenant and a sub-namespace with names of 63 characters, all access objects exist, and sudo "+
		"works", func(ctx SpecContext) {
		f := of(world, "r12")
		tenant, sub := f.own(strings.Repeat("t", 59)), f.own(strings.Repeat("s", 59))
		f.settle(ctx, build.Tenant(tenant).Users(f.own("alice")).Managers(f.own("mia")).Sudoers(f.own("bob")))
		f.grow(ctx, tenant, sub)
		for _, object := range append(pair("warren:sudo:"+tenant), pair("warren:edit:"+tenant)...) {
			f.Exists(ctx, object)
		}
		Expect(v1alpha1.SudoersGroup(tenant)).To(HaveLen(71))
		allowed(ctx, f.Sudo(f.own("bob"), tenant), secretsIn(tenant), secretsIn(sub), readTenant(tenant))
		allowed(ctx, f.as("alice"), podsIn(tenant), podsIn(sub))
		allowed(ctx, f.as("mia"), readTenant(tenant))
	})
})

// mayImpersonate asks the API server's authorizer whether a user may impersonate.
func (f *fixture) mayImpersonate(ctx context.Context, user, resource, name string) func() (bool, error) {
	return func() (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: resource, Name: name},
		}}
		err := f.As(controlplane.Admin).Create(ctx, review)
		return review.Status.Allowed, err
	}
}
