package takeoff_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/suite"
)

var _ = Describe("make undeploy with a budget", func() {
	It("QUOTA-38 after make undeploy, shares stay as ordinary ResourceQuotas in force; make deploy takes them up without a write",
		func(ctx SpecContext) {
			s := newSite(ctx, "open")
			s.tenant(ctx, "payments")
			share := &corev1.ResourceQuota{}
			read := func() error {
				return s.Admin().Get(ctx, client.ObjectKey{Namespace: "payments-web", Name: budget.QuotaName}, share)
			}
			Eventually(func(g Gomega) {
				payments := build.Tenant("payments").Object()
				g.Expect(s.Read(payments)(ctx)).To(Succeed())
				payments.Spec.Limits = &v1alpha1.Limits{Hard: v1alpha1.Budget{"pods": resource.MustParse("10"), "services": resource.MustParse("0")}}
				g.Expect(s.Admin().Update(ctx, payments)).To(Succeed())
			}).WithContext(ctx).Should(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(read()).To(Succeed())
				g.Expect(share.Status.Hard).To(SatisfyAll(HaveKey(corev1.ResourcePods), HaveKey(corev1.ResourceServices)))
			}).WithContext(ctx).Should(Succeed())
			s.ready(ctx, "payments")
			version := share.ResourceVersion

			s.undeploy(ctx)
			Expect(read()).To(Succeed())
			Expect(share.ResourceVersion).To(Equal(version))
			refused := MatchError(ContainSubstring("exceeded quota: " + budget.QuotaName))
			Expect(s.Admin().Create(ctx, build.Service("payments-web", "web", 80))).To(refused)

			s.deploy(ctx)
			s.ready(ctx, "payments")
			Eventually(func(g Gomega) {
				payments := build.Tenant("payments").Object()
				g.Expect(s.Read(payments)(ctx)).To(Succeed())
				payments.Spec.Limits.Hard["pods"] = resource.MustParse("20")
				g.Expect(s.Admin().Update(ctx, payments)).To(Succeed())
				g.Expect(v1alpha1.FindCondition(payments.Status.Conditions, v1alpha1.ConditionBudgetEnforced).ObservedGeneration).
					To(Equal(payments.Generation), "the budget is looked after again")
			}).WithContext(ctx).Should(Succeed())
			Expect(read()).To(Succeed())
			Expect(share.ResourceVersion).To(Equal(version))
		}, SpecTimeout(4*suite.Patience))
})
