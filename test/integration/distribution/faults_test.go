package distribution_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// mutates has the API server change every Secret that is written in the case's targets.
func (f *field) mutates(ctx SpecContext, expression string) {
	GinkgoHelper()
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.id},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &fail, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
				}}}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: expression},
			}},
		},
	}
	bound := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.id},
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: f.id,
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"dist": f.id}},
			}},
	}
	for _, o := range []client.Object{policy, bound} {
		Expect(f.Admin().Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { _ = f.Admin().Delete(ctx, o) })
	}
	Eventually(ctx, func(ctx SpecContext) (*corev1.Secret, error) {
		probe := build.Secret(f.d1, "probe", "1")
		err := f.Admin().Create(ctx, probe, client.DryRunAll)
		return probe, err
	}).WithArguments(ctx).Should(Or(HaveField("Annotations", HaveKey("mutated")), HaveField("Data", HaveKey("mutated"))))
}

var _ = Describe("a cluster in which others write too", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })

	// writesOnce checks that each change is one write of each copy, and that nothing is written after it.
	writesOnce := func(ctx SpecContext, drift v1alpha1.DriftPolicy) {
		GinkgoHelper()
		mark := f.Mark(ctx)
		f.create(ctx, onDrift(drift))
		f.becomes(ctx, "True/Distributed")
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		f.becomes(ctx, "True/Distributed")
		f.rests(ctx)
		written := f.requests(ctx, mark)
		Expect([]int{written["create secrets"], written["update secrets"]}).To(Equal([]int{3, 3}), f.explain)
	}

	It("DIST-D43 a policy that changes an annotation at each write: each copy is written once for each change of RD, "+
		"under Revert", func(ctx SpecContext) {
		f.mutates(ctx,
			`Object{metadata: Object.metadata{annotations: {"mutated": request.operation + string(object.metadata.?resourceVersion.orValue(""))}}}`)
		writesOnce(ctx, v1alpha1.DriftRevert)
	})

	It("DIST-D43 a policy that rewrites a data value: each copy is written once for each change of RD, under Ignore", func(ctx SpecContext) {
		f.mutates(ctx, `Object{data: {"v": "bXV0YXRlZA==", "mutated": "eA=="}}`)
		writesOnce(ctx, v1alpha1.DriftIgnore)
	})

	It("DIST-D98 Revert, and a policy that always rewrites a data value: each copy is corrected five times; then Event DriftLoop, "+
		"Ready False/Progressing, outdated 3", func(ctx SpecContext) {
		f.mutates(ctx, `Object{data: {"v": "bXV0YXRlZA==", "mutated": "eA=="}}`)
		mark := f.Mark(ctx)
		f.create(ctx, onDrift(v1alpha1.DriftRevert))
		Eventually(ctx, f.Messages(f.object(), v1alpha1.ReasonDriftLoop)).Should(HaveLen(3), f.explain)
		f.rests(ctx)
		Expect(f.requests(ctx, mark)["update secrets"]).To(Equal(15), f.explain) // five repairs of each
		rd := f.becomes(ctx, "False/Progressing")
		Expect([]int32{rd.Status.Current, rd.Status.Outdated}).To(Equal([]int32{0, 3}))
	})

	It("DIST-D97 the text of a policy that refuses a copy with 422 is in failedNamespaces and the message of Ready", func(ctx SpecContext) {
		const message = "frozen until the audit is over"
		f.refusing(ctx, f.d2, message, metav1.StatusReasonInvalid)
		f.create(ctx)
		rd := f.ends(ctx, "False/Failed")
		Expect(rd.Status.FailedNamespaces).To(ConsistOf(And(HaveField("Name", f.d2), HaveField("Message", ContainSubstring(message)))))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring(message))
	})

	It("DIST-D67 if the operator may not create the Secret in d2, failedNamespaces has reason Forbidden, and Stalled Rejected; "+
		"other targets get copies; retries wait", func(ctx SpecContext) {
		const message = "no Secret of this name here"
		lift := f.refusing(ctx, f.d2, message, metav1.StatusReasonForbidden)
		mark := f.Mark(ctx)
		f.create(ctx)
		rd := f.ends(ctx, "False/Failed")
		Expect(rd.Status.FailedNamespaces).To(ConsistOf(And(HaveField("Name", f.d2), HaveField("Reason", v1alpha1.ReasonForbidden),
			HaveField("Message", ContainSubstring(message)))))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionStalled).Reason).To(Equal("Rejected"))
		Expect(rd.Status.Current).To(BeEquivalentTo(2))
		// Retries wait from 200 ms to 2 s. Without a wait, the operator would have sent hundreds of requests in that time.
		Consistently(ctx, func() int { return f.requests(ctx, mark)["create secrets"] }).WithTimeout(10 * time.Second).
			Should(BeNumerically("<", 40))
		lift()
		f.distributed(ctx, "v=1", f.d2)
		f.becomes(ctx, "True/Distributed")
	})
})

// refusing has a policy refuse the case's Secret in a namespace, with a message and a reason. lift takes the policy away.
func (f *field) refusing(ctx context.Context, namespace, message string, reason metav1.StatusReason) (lift func()) {
	GinkgoHelper()
	policy, bound := build.Policy(namespace, admissionregistrationv1.Create, corev1.SchemeGroupVersion.WithResource("secrets"),
		`object.metadata.name != "`+f.id+`"`, message)
	policy.Spec.Validations[0].Reason = &reason
	for _, o := range []client.Object{policy, bound} {
		Expect(f.Admin().Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { _ = f.Admin().Delete(ctx, o) })
	}
	// Asked as the admin, whom no other policy refuses: of several that refuse, the API server names any one.
	Eventually(ctx, func() error {
		return f.Admin().Create(ctx, build.Secret(namespace, f.id, "1"), client.DryRunAll)
	}).Should(MatchError(ContainSubstring(message)))
	return func() { Expect(f.Admin().Delete(ctx, bound)).To(Succeed()) }
}

var _ = Describe("a secret value", func() {
	It("DIST-D77 a value of the data is in no log, Event, metric, status or message, also if RD is in conflict, failed, "+
		"suspended or refused", func(ctx SpecContext) {
		f, value := plough(ctx, world), "s3ntinel-"+rand.String(8)
		signs := []string{value, base64.StdEncoding.EncodeToString([]byte(value))}
		told := []string{}
		f.obstacle(ctx, f.d2, value)
		f.create(ctx, f.holding(map[string]string{"v": value}))
		f.becomes(ctx, "False/Conflict")
		yes := true
		Expect(f.Admin().Delete(ctx, f.at(ctx, f.d2))).To(Succeed())
		f.becomes(ctx, "True/Distributed")
		Expect(f.edit(ctx, "admin", f.d1, func(s *corev1.Secret) { s.Immutable = &yes })).To(Succeed())
		f.change(ctx, f.holding(map[string]string{"v": value + "-2"}))
		f.becomes(ctx, "False/Failed")
		f.change(ctx, func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Suspend = true })
		f.becomes(ctx, "False/Suspended")
		g := plough(ctx, judged)
		for _, edit := range []func(map[string]any){
			func(r map[string]any) {
				r["type"] = "kubernetes.io/dockerconfigjson"
				r["stringData"] = map[string]any{".dockerconfigjson": value}
			},
			func(r map[string]any) { r["data"] = map[string]any{"v": value + "%"} },
			func(r map[string]any) { r["data"] = map[string]any{"v": map[string]any{value: 1}} },
			func(r map[string]any) { r["metadata"] = map[string]any{"name": "a", "namespace": value} },
		} {
			err := g.Admin().Create(ctx, g.object(g.with(edit)))
			Expect(err).To(HaveOccurred())
			told = append(told, err.Error())
		}
		for _, world := range []*field{f, g} {
			list := &corev1.EventList{}
			Expect(world.Admin().List(ctx, list)).To(Succeed())
			for _, e := range list.Items {
				told = append(told, e.Message)
			}
			metrics, err := world.Operator.Metrics(ctx)
			Expect(err).NotTo(HaveOccurred())
			told = append(told, world.Operator.Log(), fmt.Sprint(metrics))
		}
		told = append(told, fmt.Sprintf("%+v", f.read(ctx).Status))
		out, _, _ := f.Kubectl(ctx, "admin", "get", "rdist", "-o", "wide")
		described, _, _ := f.Kubectl(ctx, "admin", "warren", "distribution", "describe", f.id)
		for _, text := range append(told, out, described) {
			for _, sign := range signs {
				Expect(strings.Contains(text, sign)).To(BeFalse(), text[:min(len(text), 2000)])
			}
		}
	})
})
