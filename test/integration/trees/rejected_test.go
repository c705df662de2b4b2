package trees_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

// fewTries bounds the writes of one namespace that are refused alike within a minute: after 0, 1, 3, 7, 15 and 31 seconds.
const fewTries = 6

var _ = Describe("the API server refuses the labels of a namespace", func() {
	It("SUB-I32 while a policy refuses an inherited label, SubNamespace (Stalled) and HierarchyConfiguration are MetadataRejected; at most "+
		"6 tries in 30 s, no error in the log; SUB-I32 the operator removes a condition that a user adds to either status; once the policy is "+
		"gone and the namespace changes, it has the label, and both are Ready", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("i32-payments"))
		shared.grow(ctx, "i32-payments/i32-web")
		bound := shared.refuse(ctx, "i32-web", `!("team" in object.metadata.labels)`, "no team here")
		since := shared.Mark(ctx)
		shared.label(ctx, "i32-payments", "team=neco")
		Eventually(shared.sub("i32-payments/i32-web")).WithContext(ctx).Should(And(stall(v1alpha1.ReasonMetadataRejected, "no team here"),
			say(v1alpha1.ConditionMetadataSynced, metav1.ConditionFalse, v1alpha1.ReasonMetadataRejected, "no team here")))
		Eventually(shared.hier("i32-web")).WithContext(ctx).Should(unready(v1alpha1.ConditionMetadataSynced, v1alpha1.ReasonMetadataRejected,
			"no team here"))
		shared.expectFewTries(ctx, since, "i32-web")

		By("what anybody else writes into the status goes")
		foreign := metav1.Condition{Type: "Reviewed", Status: metav1.ConditionTrue, Reason: "Mia", LastTransitionTime: metav1.Now()}
		sub := shared.read(ctx, subNamespace("i32-payments/i32-web")).(*v1alpha1.SubNamespace)
		sub.Status.Conditions = append(sub.Status.Conditions, foreign)
		sub.ResourceVersion = "" // the operator may write the status, too
		Expect(shared.Admin().Status().Patch(ctx, sub, client.Merge)).To(Succeed())
		hc := shared.read(ctx, build.Hierarchy("i32-web")).(*v1alpha1.HierarchyConfiguration)
		hc.Status.Conditions = append(hc.Status.Conditions, foreign)
		hc.ResourceVersion = ""
		Expect(shared.Admin().Status().Patch(ctx, hc, client.Merge)).To(Succeed())
		Eventually(shared.sub("i32-payments/i32-web")).WithContext(ctx).
			Should(HaveField("Status.Conditions", Not(ContainElement(HaveField("Type", "Reviewed")))))
		Eventually(shared.hier("i32-web")).WithContext(ctx).
			Should(HaveField("Status.Conditions", Not(ContainElement(HaveField("Type", "Reviewed")))))

		shared.Delete(ctx, bound)
		shared.allowed(ctx, "i32-web", "team=neco")
		shared.annotate(ctx, "i32-web", "touched=yes") // the operator tries again at once
		Eventually(shared.ns("i32-web")).WithContext(ctx).Should(carry("team", "neco"))
		Eventually(shared.sub("i32-payments/i32-web")).WithContext(ctx).
			Should(And(beReady(), WithTransform(condition(v1alpha1.ConditionStalled), BeZero())))
		Eventually(shared.hier("i32-web")).WithContext(ctx).Should(settled())
	})

	It("HIER-P13 while a foreign policy refuses the label parent, ParentApplied is Unknown with its message, at few tries; once "+
		"it is gone and x changes, Applied", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("p13-org"), build.Namespace("p13-x"))
		bound := shared.refuse(ctx, "p13-x", `!("`+v1alpha1.LabelParent+`" in object.metadata.labels)`, "nobody moves this one")
		since := shared.Mark(ctx)
		shared.wish(ctx, "p13-x", build.Below("p13-org"))
		Eventually(shared.hier("p13-x")).WithContext(ctx).Should(say(refused, metav1.ConditionUnknown, v1alpha1.ReasonPending,
			"nobody moves this one"))
		shared.expectFewTries(ctx, since, "p13-x")
		shared.Delete(ctx, bound)
		shared.allowed(ctx, "p13-x", v1alpha1.LabelParent+"=p13-org")
		shared.annotate(ctx, "p13-x", "touched=yes")
		Eventually(shared.hier("p13-x")).WithContext(ctx).Should(applied())
	})
})

var _ = Describe("the API server refuses to make a namespace", func() {
	It("SUB-S12 while a policy refuses the Namespace, each time with another text, the SubNamespace is CreateFailed, with at most 6 tries "+
		"in 30 s; without it, a new spec is Ready; SUB-S17 the message of CreateFailed has: the operator tries again within 5m, and at once "+
		"when this SubNamespace is created again or its spec changes", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s12-payments"))
		policy, bound := build.Policy("s12-web", admissionv1.Create, corev1.SchemeGroupVersion.WithResource("namespaces"), "false", "")
		policy.Spec.Validations[0].Message, policy.Spec.Validations[0].MessageExpression = "", "'no room for ' + string(object.metadata.uid)"
		shared.Create(ctx, policy, bound)
		DeferCleanup(func(ctx SpecContext) { _ = client.IgnoreNotFound(shared.Admin().Delete(ctx, bound)) })
		Eventually(func(ctx context.Context) error {
			return shared.Admin().Create(ctx, build.Namespace("s12-web"), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(MatchRegexp("no room for [0-9a-f]+-")), "the policy is in force")
		since := shared.Mark(ctx)
		shared.Create(ctx, subNamespace("s12-payments/s12-web"))
		Eventually(shared.sub("s12-payments/s12-web")).WithContext(ctx).Should(stall(v1alpha1.ReasonCreateFailed, "no room for "))
		By("SUB-S17 telling when it is asked again")
		Eventually(shared.sub("s12-payments/s12-web")).WithContext(ctx).Should(stall(v1alpha1.ReasonCreateFailed,
			"; the operator tries again within 5m, and at once when this SubNamespace is created again or its spec changes"))
		shared.expectFewTries(ctx, since, "s12-web")
		shared.Delete(ctx, bound)
		Eventually(func(ctx context.Context) error {
			err := shared.Admin().Create(ctx, build.Namespace("s12-web"), client.DryRunAll)
			if apierrors.IsAlreadyExists(err) {
				return nil // the operator has already made it
			}
			return err
		}).WithContext(ctx).Should(Succeed(), "the policy is in force no longer")
		edit(ctx, shared, subNamespace("s12-payments/s12-web"),
			func(sub *v1alpha1.SubNamespace) { sub.Spec.Labels = map[string]v1alpha1.LabelValue{"app": "web"} })
		Eventually(shared.sub("s12-payments/s12-web")).WithContext(ctx).Should(beReady())
	})
})

// refuse adds a policy that is not Warren's. It refuses updates of a Namespace unless the expression holds.
func (c cluster) refuse(ctx context.Context, namespace, expression, message string) *admissionv1.ValidatingAdmissionPolicyBinding {
	GinkgoHelper()
	policy, bound := build.Policy(namespace, admissionv1.Update, corev1.SchemeGroupVersion.WithResource("namespaces"),
		"!has(object.metadata.labels) || "+expression+" || 'forced' in object.metadata.labels", message)
	c.Create(ctx, policy, bound)
	DeferCleanup(func(ctx SpecContext) { _ = client.IgnoreNotFound(c.Admin().Delete(ctx, bound)) })
	Eventually(func(ctx context.Context) error {
		return c.tryLabels(ctx, namespace, "team=x", v1alpha1.LabelParent+"=p13-org")
	}).
		WithContext(ctx).Should(MatchError(ContainSubstring(message)), "the policy is in force")
	return bound
}

// allowed waits until the API server would take a label of a Namespace.
func (c cluster) allowed(ctx context.Context, namespace string, edits ...string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error { return c.tryLabels(ctx, namespace, edits...) }).WithContext(ctx).Should(Succeed())
}

// tryLabels changes labels by dry run, and returns the API server's error.
func (c cluster) tryLabels(ctx context.Context, namespace string, edits ...string) error {
	n, err := c.ns(namespace)(ctx)
	if err != nil {
		return err
	}
	before := n.DeepCopy()
	n.Labels = edited(n.Labels, edits)
	return c.Admin().Patch(ctx, n, client.MergeFrom(before), client.DryRunAll)
}

// expectFewTries expects few refused writes of a Namespace since a mark and for a while from now on, and no error of a reconciler.
func (c cluster) expectFewTries(ctx context.Context, since audit.Position, namespace string) {
	GinkgoHelper()
	Consistently(c.namespaceWrites(since, namespace)).WithContext(ctx).WithTimeout(30 * time.Second).
		Should(WithTransform(func(writes []string) int { return len(writes) }, And(BeNumerically(">", 0), BeNumerically("<=", fewTries))))
	for line := range strings.Lines(c.Operator.Log()) {
		if strings.Contains(line, "Reconciler error") {
			Expect(line).NotTo(ContainSubstring(namespace))
		}
	}
}
