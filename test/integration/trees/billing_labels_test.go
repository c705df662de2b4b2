package trees_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// The labels of the cases, and a configuration that names them. It allows each of them in a SubNamespace.
const (
	costKey      = "finance.example.com/cost-center"
	ownerKey     = "finance.example.com/owner"
	billingRules = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
inheritance: {labels: ["pod-security.kubernetes.io/*", "finance.example.com/*"]}
subNamespaces: {labels: [app, "finance.example.com/*"]}
`
	billingLabels = billingRules + "billing: {namespaceLabels: {costCenter: " + costKey + ", owner: " + ownerKey + "}}\n"
)

func (c cluster) lns(name string) func(context.Context) (*v1alpha1.LNamespace, error) {
	return func(ctx context.Context) (*v1alpha1.LNamespace, error) {
		lns := &v1alpha1.LNamespace{}
		return lns, c.Admin().Get(ctx, client.ObjectKey{Name: name}, lns)
	}
}

// pays sets cost center and owner of a tenant.
func (c cluster) pays(ctx context.Context, name, costCenter, owner string) {
	GinkgoHelper()
	edit(ctx, c, build.Tenant(name).Object(), func(lns *v1alpha1.LNamespace) {
		lns.Spec.Billing = &v1alpha1.Billing{CostCenter: costCenter, Owner: owner}
	})
}

func labelled(status metav1.ConditionStatus, reason v1alpha1.Reason, parts ...string) types.GomegaMatcher {
	return say(v1alpha1.ConditionBillingLabelled, status, reason, parts...)
}

// unwritten expects that the operator writes none of these Namespaces for a while, whatever it writes in them.
func (c cluster) unwritten(ctx context.Context, names ...string) {
	GinkgoHelper()
	Consistently(c.namespaceWrites(c.Mark(ctx), names...)).WithContext(ctx).WithTimeout(test.Quiet(5 * time.Second)).
		WithPolling(500 * time.Millisecond).Should(BeEmpty())
}

// labelsFollow is about a tenant and two levels of sub-namespaces.
func labelsFollow(ctx context.Context, own *configured) {
	GinkgoHelper()
	tree := []string{"b68-pay", "b68-web", "b68-deep"}
	eventually := func(said types.GomegaMatcher) {
		GinkgoHelper()
		for _, name := range tree {
			Eventually(own.ns(name)).WithContext(ctx).Should(said, name)
		}
	}
	own.configure(ctx, billingLabels)
	tenant := build.Tenant("b68-pay").Object()
	tenant.Spec.Billing = &v1alpha1.Billing{CostCenter: "4711", Owner: "pay-leads"}
	own.Create(ctx, tenant)
	Eventually(own.lns("b68-pay")).WithContext(ctx).Should(labelled(metav1.ConditionTrue, v1alpha1.ReasonLabelled))
	own.grow(ctx, "b68-pay/b68-web", "b68-web/b68-deep")
	for _, name := range tree {
		Expect(own.now(ctx, name)).To(And(carry(costKey, "4711"), carry(ownerKey, "pay-leads")), "from its first version")
	}

	since := own.Mark(ctx)
	own.pays(ctx, "b68-pay", "4712", "shop-leads")
	eventually(And(carry(costKey, "4712"), carry(ownerKey, "shop-leads")))
	own.unwritten(ctx, tree...)
	Expect(own.namespaceWrites(since, tree...)(ctx)).To(HaveLen(len(tree)), "one write for each namespace")

	own.pays(ctx, "b68-pay", "4712", "pay-leads@example.com")
	eventually(And(carry(costKey, "4712"), lack(ownerKey)))
	Eventually(own.lns("b68-pay")).WithContext(ctx).Should(labelled(metav1.ConditionFalse, v1alpha1.ReasonInvalidLabelValue,
		`spec.billing.owner "pay-leads@example.com" can't be the value of a label`))
	Eventually(ctx, own.Reasons(build.Tenant("b68-pay").Object())).
		Should(ContainElement(string(v1alpha1.ReasonInvalidLabelValue)))

	own.pays(ctx, "b68-pay", "", "")
	eventually(And(lack(costKey), lack(ownerKey)))
	Eventually(own.lns("b68-pay")).WithContext(ctx).Should(labelled(metav1.ConditionTrue, v1alpha1.ReasonLabelled))

	own.pays(ctx, "b68-pay", "4711", "pay-leads")
	eventually(And(carry(costKey, "4711"), carry(ownerKey, "pay-leads")))
	own.configure(ctx, billingRules)
	eventually(And(lack(costKey), lack(ownerKey)))
	Eventually(own.lns("b68-pay")).WithContext(ctx).
		Should(HaveField("Status.Conditions", Not(ContainElement(HaveField("Type", string(v1alpha1.ConditionBillingLabelled))))))
	own.unwritten(ctx, tree...)
}

// takenKeys is about keys that somebody uses already.
func takenKeys(ctx context.Context, own *configured) {
	GinkgoHelper()
	own.configure(ctx, billingRules)
	own.Create(ctx, build.Template("b69-base", ownerKey, "platform"))
	tenant := build.Tenant("b69-pay").Template("b69-base").Object()
	tenant.Spec.Billing = &v1alpha1.Billing{CostCenter: "4711", Owner: "pay-leads"}
	own.Create(ctx, tenant)
	own.grow(ctx, "b69-pay/b69-web", "b69-web/b69-deep")
	own.label(ctx, "b69-deep", costKey+"=shared")
	Eventually(own.ns("b69-web")).WithContext(ctx).Should(carry(ownerKey, "platform"))

	own.configure(ctx, billingLabels)
	for _, name := range []string{"b69-pay", "b69-web"} {
		Eventually(own.ns(name)).WithContext(ctx).Should(carry(costKey, "4711"))
	}
	Eventually(own.lns("b69-pay")).WithContext(ctx).Should(labelled(metav1.ConditionFalse, v1alpha1.ReasonKeyTaken,
		"label "+costKey+" has another value on b69-deep, and the operator keeps that value",
		"label "+ownerKey+" has another value on b69-deep, b69-pay, b69-web, and the operator keeps that value"))
	Eventually(ctx, own.Reasons(build.Tenant("b69-pay").Object())).Should(ContainElement(string(v1alpha1.ReasonKeyTaken)))
	own.unwritten(ctx, "b69-pay", "b69-web", "b69-deep")
	Expect(own.now(ctx, "b69-deep")).To(And(carry(costKey, "shared"), carry(ownerKey, "platform")))

	own.label(ctx, "b69-base", ownerKey+"-")
	own.label(ctx, "b69-deep", costKey+"-")
	for _, name := range []string{"b69-pay", "b69-web", "b69-deep"} {
		Eventually(own.ns(name)).WithContext(ctx).Should(And(carry(costKey, "4711"), carry(ownerKey, "pay-leads")))
	}
	Eventually(own.lns("b69-pay")).WithContext(ctx).Should(labelled(metav1.ConditionTrue, v1alpha1.ReasonLabelled))

	own.label(ctx, "b69-deep", costKey+"=0")
	Eventually(own.ns("b69-deep")).WithContext(ctx).Should(carry(costKey, "4711"), "what the operator wrote is put back")
}

// nobodyElsePays is about what tenants may write, where no webhook is served.
func nobodyElsePays(ctx context.Context, own *configured) {
	GinkgoHelper()
	own.configure(ctx, billingLabels)
	tenant := build.Tenant("b70-pay").Object()
	tenant.Spec.Billing = &v1alpha1.Billing{CostCenter: "4711", Owner: "pay-leads"}
	own.Create(ctx, tenant, build.Tenant("b70-shop").Object())
	own.grow(ctx, "b70-pay/b70-web")
	own.Create(ctx, build.SubNamespace("b70-web", "b70-free", "app", "web", costKey, "0"))
	Eventually(own.sub("b70-web/b70-free")).WithContext(ctx).Should(say(v1alpha1.ConditionMetadataSynced, metav1.ConditionFalse,
		v1alpha1.ReasonKeyNotAllowed, costKey))
	Expect(own.now(ctx, "b70-free")).To(And(carry("app", "web"), carry(costKey, "4711"), carry(ownerKey, "pay-leads")))

	own.wish(ctx, "b70-web", build.Propagating(costKey, ownerKey), build.Overriding(costKey, ownerKey))
	own.unwritten(ctx, "b70-web", "b70-free")
	Expect(own.now(ctx, "b70-free")).To(And(carry(costKey, "4711"), carry(ownerKey, "pay-leads")))

	Eventually(own.ns("b70-shop")).WithContext(ctx).Should(standing("b70-shop", "0"))
	own.label(ctx, "b70-web", fmt.Sprintf("%s=b70-shop", v1alpha1.LabelParent), v1alpha1.LabelBound+"-")
	for _, name := range []string{"b70-web", "b70-free"} {
		Eventually(own.ns(name)).WithContext(ctx).Should(And(lack(costKey), lack(ownerKey)), "a tree pays as its own tenant does")
	}
}
