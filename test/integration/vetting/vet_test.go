package vetting_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("the ClusterRole of users", Ordered, Serial, ContinueOnFailure, func() {
	const toAdmin = "rbac.authorization.k8s.io/aggregate-to-admin"
	var (
		nothing    = []float64{0, 0}
		ready      = SatisfyAll(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "Granted"))
		unvetted   = SatisfyAll(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "GrantedUnvetted"))
		dangerous  = build.Labelled(build.ClusterRole("acc-t02-danger", build.Rule("", "namespaces", "update")), toAdmin, "true")
		harmless   = build.Labelled(build.ClusterRole("acc-t02-harmless", build.Rule("vetting.example.com", "widgets", "get")), toAdmin, "true")
		definition = build.CustomResource("vetting.example.com", "Widget", "widgets")
	)
	create := func(ctx SpecContext, object client.Object) {
		GinkgoHelper()
		object = object.DeepCopyObject().(client.Object)
		Expect(world.Admin().Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(world.Admin().Delete(ctx, object))).To(Succeed())
		})
	}
	remove := func(ctx SpecContext, object client.Object) {
		GinkgoHelper()
		Expect(world.Admin().Delete(ctx, object.DeepCopyObject().(client.Object))).To(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		for _, name := range []string{"payments", "shop"} {
			Expect(world.Admin().Create(ctx, build.Tenant(name).Users("alice").Managers("mia").Sudoers("bob").Object())).To(Succeed())
			Eventually(accessReady(ctx, name)).WithContext(ctx).Should(ready)
		}
	})

	It("holds what was vetted, where nobody has changed it", func(ctx SpecContext) {
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal(nothing))
		findings, code := vet(ctx)
		Expect(findings).To(BeEmpty())
		Expect(code).To(BeZero())
		out, problems, code := world.Kubectl(ctx, controlplane.Admin, "warren", "vet")
		Expect(code).To(BeZero(), problems)
		Expect(out).To(MatchRegexp(`^ClusterRole admin grants nothing beyond the list of Kubernetes v1\.\d+\.\d+, vetted on [-0-9]{10}\.\n$`))
		Expect(events(ctx, "admin")()).To(BeEmpty())
	})

	listCases()

	It("ACC-T02 a dangerous right in admin gives the metric, an Event, GrantedUnvetted and vet's status 2; without it nothing; a "+
		"harmless one gives metric new and status 1, conditions unchanged", func(ctx SpecContext) {
		By("a ClusterRole adds update namespaces to admin")
		create(ctx, dangerous)
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal([]float64{1, 0}))
		for _, tenant := range []string{"payments", "shop"} {
			Eventually(accessReady(ctx, tenant)).WithContext(ctx).Should(SatisfyAll(unvetted,
				HaveField("Message", ContainSubstring("update namespaces, from ClusterRole acc-t02-danger"))))
		}
		const told = "Warning: users of every tenant hold dangerous rights: update namespaces, from ClusterRole acc-t02-danger"
		Eventually(events(ctx, "admin")).WithContext(ctx).Should(ConsistOf(told))
		findings, code := vet(ctx)
		Expect(code).To(Equal(2))
		Expect(findings).To(ConsistOf(finding{"danger", "update namespaces, from ClusterRole acc-t02-danger", []string{"acc-t02-danger"}}))
		out, problems, code := world.Kubectl(ctx, controlplane.Admin, "warren", "vet")
		Expect(code).To(Equal(2))
		Expect(out).To(MatchRegexp(`^danger +update namespaces, from ClusterRole acc-t02-danger\n$`))
		Expect(problems).To(Equal("error: ClusterRole admin: 1 finding of severity danger, 0 of severity new\n"))

		By("a tenant that is made meanwhile says so too")
		create(ctx, build.Tenant("late").Users("dave").Object())
		Eventually(accessReady(ctx, "late")).WithContext(ctx).Should(unvetted)

		By("an operator that starts meanwhile writes nothing")
		Eventually(func(g Gomega) { // the old process has nothing left to write, either
			mark, err := world.Mark(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Consistently(func() (any, error) { return world.Writes(ctx, mark) }).WithContext(ctx).WithTimeout(3 * time.Second).Should(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
		mark, err := world.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(world.Operator.Restart(ctx)).To(Succeed())
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal([]float64{1, 0}))
		Consistently(func() (any, error) { return world.Writes(ctx, mark) }).
			WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).Should(BeEmpty())

		By("it is removed")
		remove(ctx, dangerous)
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal(nothing))
		for _, tenant := range []string{"payments", "shop", "late"} {
			Eventually(accessReady(ctx, tenant)).WithContext(ctx).Should(ready)
		}
		Eventually(events(ctx, "admin")).WithContext(ctx).Should(ContainElement(HavePrefix("Normal: ")))
		findings, code = vet(ctx)
		Expect(findings).To(BeEmpty())
		Expect(code).To(BeZero())

		By("a ClusterRole adds a harmless right on a CRD")
		create(ctx, definition)
		before := resourceVersions(ctx)
		create(ctx, harmless)
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal([]float64{0, 1}))
		Eventually(events(ctx, "admin")).WithContext(ctx).Should(ContainElement(
			"Normal: users of every tenant hold rights that were not vetted: get widgets.vetting.example.com, from ClusterRole acc-t02-harmless"))
		findings, code = vet(ctx)
		Expect(code).To(Equal(1))
		Expect(findings).To(ConsistOf(HaveField("Message", "get widgets.vetting.example.com, from ClusterRole acc-t02-harmless")))
		Consistently(func() map[string]string { return resourceVersions(ctx) }).
			WithContext(ctx).WithTimeout(test.Quiet(10*time.Second)).Should(Equal(before), "conditions unchanged")
		remove(ctx, harmless)
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal(nothing))
	}, SpecTimeout(8*time.Minute))

	It("is told by the name of the ClusterRole that brings a right in, however far from it", func(ctx SpecContext) {
		create(ctx, build.Labelled(build.ClusterRole("far", build.Rule("", "nodes", "patch", "get")),
			"rbac.authorization.k8s.io/aggregate-to-view", "true"))
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal([]float64{1, 1}))
		findings, code := vet(ctx)
		Expect(code).To(Equal(2))
		Expect(findings).To(Equal([]finding{
			{"danger", "patch nodes, from ClusterRole far", []string{"far"}}, {"new", "get nodes, from ClusterRole far", []string{"far"}},
		}))
		Eventually(events(ctx, "admin")).WithContext(ctx).Should(ContainElement("Warning: users of every tenant hold " +
			"dangerous rights: patch nodes, from ClusterRole far; and rights that were not vetted: get nodes, from ClusterRole far"))
	})

	It("is another one as soon as the configuration says so", func(ctx SpecContext) {
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal(nothing), "after the case before")
		create(ctx, dangerous)
		Eventually(accessReady(ctx, "payments")).WithContext(ctx).Should(unvetted)
		file := world.OperatorConfig
		DeferCleanup(func(ctx SpecContext) { Expect(world.Operator.Configure(ctx, file)).To(Succeed()) })
		Expect(world.Operator.Configure(ctx, strings.TrimRight(file, "\n")+"\naccess:\n  userClusterRole: edit\n")).To(Succeed())
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal(nothing), "edit is not aggregated from admin")
		Eventually(accessReady(ctx, "payments")).WithContext(ctx).Should(ready)

		By("the new one is watched")
		own := build.Labelled(build.ClusterRole("to-edit", build.Rule(rbacv1.GroupName, "roles", "escalate")),
			"rbac.authorization.k8s.io/aggregate-to-edit", "true")
		create(ctx, own)
		Eventually(counted(ctx)).WithContext(ctx).Should(Equal([]float64{1, 0}))
		Eventually(events(ctx, "edit")).WithContext(ctx).
			Should(ContainElement(ContainSubstring("escalate roles.rbac.authorization.k8s.io, from ClusterRole to-edit")))
		findings, code := vet(ctx, "--role", "edit")
		Expect(code).To(Equal(2))
		Expect(findings).To(ConsistOf(HaveField("Message", "escalate roles.rbac.authorization.k8s.io, from ClusterRole to-edit")))
	}, SpecTimeout(8*time.Minute))
})

// resourceVersions are those of the tenants: any write to a tenant changes its own.
func resourceVersions(ctx SpecContext) map[string]string {
	GinkgoHelper()
	tenants := &v1alpha1.LNamespaceList{}
	Expect(world.Admin().List(ctx, tenants)).To(Succeed())
	versions := map[string]string{}
	for _, t := range tenants.Items {
		versions[t.Name] = t.ResourceVersion
	}
	return versions
}
