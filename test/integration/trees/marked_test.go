package trees_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/words"
)

var _ = Describe("a HierarchyConfiguration that asks for a place", func() {
	It("HIER-P11 with webhooks off, a request means the p of its time: if p was a template, and strangers create a root p, "+
		"x stays plain until spec.parent is set again", func(ctx SpecContext) {
		bait := build.Secret("p11-p", "bait", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
		shared.Create(ctx, build.Template("p11-p"), build.Namespace("p11-x"))
		shared.wish(ctx, "p11-x", build.Below("p11-p"))
		Eventually(shared.hier("p11-x")).WithContext(ctx).Should(unready(v1alpha1.ConditionParentApplied, v1alpha1.ReasonIllegalParent,
			"is a template"))
		// Strangers make a root of that name.
		shared.free(ctx, "p11-p")
		shared.Create(ctx, build.Root("p11-p"), bait)
		Eventually(shared.hier("p11-x")).WithContext(ctx).Should(unready(v1alpha1.ConditionParentApplied, v1alpha1.ReasonIllegalParent,
			"parent namespace p11-p was created after spec.parent named it: clear spec.parent, then set it again"))
		shared.quiet(ctx, 3*time.Second, "p11-x")
		Expect(shared.now(ctx, "p11-x")).To(lack(v1alpha1.LabelParent))
		shared.Absent(ctx, build.Secret("p11-x", "bait", ""))
		// If the place is asked for again, the right to it is checked again.
		shared.wish(ctx, "p11-x")
		Eventually(shared.hier("p11-x")).WithContext(ctx).Should(say(v1alpha1.ConditionParentApplied, metav1.ConditionTrue,
			v1alpha1.ReasonNotRequested))
		shared.wish(ctx, "p11-x", build.Below("p11-p"))
		Eventually(shared.hier("p11-x")).WithContext(ctx).Should(applied())
	})

	It("HIER-P12 with overlay standard and webhooks off, a request is Pending without a mark, and IllegalParent with another mark; the "+
		"LNamespace's UID as mark has it carried out, and is removed", func(ctx SpecContext) {
		w, err := devcluster.Start(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: fixture, Manager: built.Manager}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		c, tenant := cluster{words.Cluster{World: w}}, build.Tenant("p12-payments").Object()
		c.Create(ctx, tenant, build.Namespace("p12-legacy"))
		Eventually(c.ns("p12-payments")).WithContext(ctx).Should(standing("p12-payments", "0"))
		place := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1alpha1.LabelParent+`":"p12-payments"}}}`))
		Eventually(func() error {
			return c.As(controlplane.Operator).Patch(ctx, build.Namespace("p12-legacy"), place, client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("may join a tree only after")), "the policy is in force")
		c.wish(ctx, "p12-legacy", build.Below("p12-payments"))
		Eventually(c.hier("p12-legacy")).WithContext(ctx).Should(say(v1alpha1.ConditionParentApplied, metav1.ConditionUnknown,
			v1alpha1.ReasonPending,
			"may join a tree only after a cluster administrator has set annotation tenancy.warren.dev/adopt"))
		c.annotate(ctx, "p12-legacy", v1alpha1.AnnotationAdopt+"=p12-alice")
		Eventually(c.hier("p12-legacy")).WithContext(ctx).Should(unready(v1alpha1.ConditionParentApplied, v1alpha1.ReasonIllegalParent,
			"does not name the tree of"))
		Expect(c.now(ctx, "p12-legacy")).To(lack(v1alpha1.LabelParent))
		c.annotate(ctx, "p12-legacy", v1alpha1.AnnotationAdopt+"="+string(tenant.UID))
		Eventually(c.hier("p12-legacy")).WithContext(ctx).Should(applied())
		Eventually(c.ns("p12-legacy")).WithContext(ctx).Should(And(standing("p12-payments", "1"), unnoted(v1alpha1.AnnotationAdopt)),
			"a mark counts once")
	})
})
