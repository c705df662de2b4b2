package trees_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// limitHolds asks for 30 namespaces where there is room for 10 besides l3-a and l3-b. The operator is killed once.
func limitHolds(ctx context.Context, c cluster) {
	GinkgoHelper()
	const limit, wanted, room = 12, 30, 10
	tenant := build.Tenant("l3-root").Limits(limit, -1).Object()
	c.Create(ctx, tenant)
	Eventually(c.ns("l3-root")).WithContext(ctx).Should(standing("l3-root", "0"))
	c.grow(ctx, "l3-root/l3-a", "l3-root/l3-b")
	tree := c.follow(ctx, client.HasLabels{v1alpha1.TreeLabel("l3-root")})
	parents := []string{"l3-root", "l3-a", "l3-b"}
	atOnce(wanted, func(i int) { c.Create(ctx, build.SubNamespace(parents[i%3], fmt.Sprintf("l3-x%d", i))) })
	Eventually(tree.most).WithContext(ctx).Should(BeNumerically(">", 5), "it is in the middle of it")
	Expect(c.Operator.Kill()).To(Succeed())
	Expect(c.Operator.Start(ctx)).To(Succeed())
	var ready, waiting []v1alpha1.SubNamespace
	Eventually(func(g Gomega) {
		ready, waiting = contenders(ctx, c, parents)
		g.Expect(ready).To(HaveLen(room))
		g.Expect(waiting).To(HaveLen(wanted - room))
	}).WithContext(ctx).Should(Succeed())
	Expect(&waiting[0]).To(stall(v1alpha1.ReasonLimitExceeded, fmt.Sprintf("tenant l3-root allows %d sub-namespaces (%d in use)", limit,
		limit)))

	c.Delete(ctx, &ready[0], &ready[1])
	for _, oldest := range waiting[:2] {
		Eventually(c.sub(oldest.Namespace + "/" + oldest.Name)).WithContext(ctx).Should(beReady())
	}
	Expect(tree.most()).To(Equal(limit+1), "with the root, never more")
	edit(ctx, c, tenant, func(l *v1alpha1.LNamespace) { l.Spec.Limits.SubNamespaces = new(int32(5)) })
	Consistently(func(g Gomega) {
		list, _ := contenders(ctx, c, parents)
		g.Expect(list).To(HaveLen(room))
		for _, sub := range list {
			g.Expect(c.now(ctx, sub.Name)).To(active())
		}
	}).WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).WithPolling(500 * time.Millisecond).Should(Succeed())
}

// contenders are the SubNamespaces l3-x… that are ready and those that the limit holds back, oldest first.
func contenders(ctx context.Context, c cluster, parents []string) (ready, waiting []v1alpha1.SubNamespace) {
	GinkgoHelper()
	for _, parent := range parents {
		list := &v1alpha1.SubNamespaceList{}
		Expect(c.Admin().List(ctx, list, client.InNamespace(parent))).To(Succeed())
		for _, sub := range list.Items {
			if sub.Name == "l3-a" || sub.Name == "l3-b" {
				continue
			}
			if ok, _ := beReady().Match(&sub); ok {
				ready = append(ready, sub)
			} else if ok, _ := stall(v1alpha1.ReasonLimitExceeded).Match(&sub); ok {
				waiting = append(waiting, sub)
			}
		}
	}
	slices.SortFunc(waiting, func(a, b v1alpha1.SubNamespace) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return ready, waiting
}

var _ = Describe("a limit of a tree", func() {
	It("SUB-L7 when a tree has room again and the parent of the older SubNamespace is halted (ParentNotManaged), the younger one gets its "+
		"Namespace", func(ctx SpecContext) {
		shared.Create(ctx, build.Tenant("l7-root").Limits(2, -1).Object())
		Eventually(shared.ns("l7-root")).WithContext(ctx).Should(standing("l7-root", "0"))
		shared.grow(ctx, "l7-root/l7-a")
		shared.Create(ctx, build.Child("l7-m", "l7-root"))
		Eventually(shared.ns("l7-m")).WithContext(ctx).Should(standing("l7-root", "1"))
		for _, text := range []string{"l7-m/l7-older", "l7-root/l7-younger"} {
			shared.Create(ctx, subNamespace(text))
			Eventually(shared.sub(text)).WithContext(ctx).Should(stall(v1alpha1.ReasonLimitExceeded,
				"tenant l7-root allows 2 sub-namespaces (2 in use)"))
		}
		// The halted namespace still counts in its tree: nobody gets around the limit by deleting a parent.
		shared.label(ctx, "l7-m", v1alpha1.LabelParent+"=l7-nowhere")
		Eventually(shared.sub("l7-m/l7-older")).WithContext(ctx).Should(stall(v1alpha1.ReasonParentNotManaged))
		Expect(shared.Admin().Delete(ctx, subNamespace("l7-root/l7-a"))).To(Succeed())
		Eventually(shared.sub("l7-root/l7-younger")).WithContext(ctx).Should(beReady())
		Eventually(shared.sub("l7-m/l7-older")).WithContext(ctx).Should(stall(v1alpha1.ReasonParentNotManaged))
	})
})
