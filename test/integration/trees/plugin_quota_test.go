package trees_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("kubectl warren quota", func() {
	It("QUOTA-37 a user without rights at the cluster level sees which limits are not readable, the share of a namespace, and how to "+
		"ask; quota ask writes an Event", func(ctx SpecContext) {
		// Without policies, a cluster admin may write the share in the operator's place.
		w := startWorld(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: fixture}, WithoutPolicies: true})
		w.tenantWithTree(ctx, "q37-pay", "q37-ann")
		asAnn := func(args ...string) []string {
			return append([]string{"quota", "--as", "q37-ann", "--kubeconfig", w.at("q37-pay-web")}, args...)
		}
		const unread = "limit of q37-pay: you may not read it\n"
		Expect(w.done(ctx, controlplane.Admin, asAnn()...)).To(ContainSubstring("\n" + unread))
		Expect(w.fails(ctx, controlplane.Admin, asAnn("-n", "q37-pay-web")...)).To(ContainSubstring("namespace q37-pay-web has no share"))

		pods := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		share := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "q37-pay-web", Name: budget.QuotaName},
			Spec: corev1.ResourceQuotaSpec{Hard: pods}}
		w.Create(ctx, share)
		Eventually(func(g Gomega) {
			g.Expect(w.Admin().Get(ctx, client.ObjectKeyFromObject(share), share)).To(Succeed())
			g.Expect(share.Status.Hard).To(HaveKey(corev1.ResourcePods))
		}).WithContext(ctx).Should(Succeed(), "Kubernetes has to count the ResourceQuota")
		const holds = "pods: 0 used of a share of 0: the share grows when more is created; if that is refused: kubectl warren quota ask -n " +
			"q37-pay-web pods=1"
		Expect(w.done(ctx, controlplane.Admin, asAnn("-n", "q37-pay-web")...)).To(HavePrefix(holds + "\n" + unread))
		Expect(w.done(ctx, controlplane.Admin, asAnn("-n", "q37-pay-web", "-o", "json")...)).To(ContainSubstring(`"kind": "Share"`))
		Expect(w.fails(ctx, controlplane.Admin, asAnn("ask", "-n", "q37-pay-web", "pods=1")...)).To(ContainSubstring(
			"pods: 0 used of a share of 0: the operator made no room for 1 within 5s"))
		events := &corev1.EventList{}
		Expect(w.Admin().List(ctx, events, client.InNamespace("q37-pay-web"), client.MatchingFields{"reason": "FailedCreate"})).To(Succeed())
		Expect(events.Items).To(ContainElement(HaveField("Message",
			"exceeded quota: hrq.tenancy.warren.dev, requested: pods=1, used: pods=0, limited: pods=0")))
	})
})
