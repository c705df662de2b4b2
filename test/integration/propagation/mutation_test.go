package propagation_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a cluster that mutates every Secret", func() {
	It("PROP-D4 if a MutatingAdmissionPolicy adds a label and a data key to every Secret, each copy gets 1 write; none in the next 60 s, "+
		"and after a restart", func(ctx SpecContext) {
		f := grow(ctx, start(ctx, setup{}))
		// The source is older than the policy, so that only its copies are mutated.
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, build.Annotated(s, v1alpha1.AnnotationSelect, "tier=web"))
		never := admissionregistrationv1.NeverReinvocationPolicy
		fail := admissionregistrationv1.Fail
		policy := &admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "mark-secrets"},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				FailurePolicy: &fail, ReinvocationPolicy: never,
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
					}}}},
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
					ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{` +
						`metadata: Object.metadata{labels: {"mutated": "yes"}}, data: {"mutated": "eA=="}}`},
				}},
			},
		}
		bound := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "mark-secrets"},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "mark-secrets"},
		}
		f.create(ctx, policy, bound)
		Eventually(ctx, func(ctx SpecContext) (map[string][]byte, error) {
			probe := build.Secret(f.solo, "probe", "1")
			err := f.Admin().Create(ctx, probe, client.DryRunAll)
			return probe.Data, err
		}).WithArguments(ctx).Should(HaveKey("mutated"))
		l := f.ledger(ctx, "secrets")
		for _, namespace := range f.tree() {
			f.labelNamespace(ctx, namespace, "tier", "web")
		}
		Eventually(ctx, f.standing).WithArguments(s, f.a, f.a1, f.b).Should(HaveLen(3))
		Expect(at(ctx, f, s, f.a).Data).To(HaveKeyWithValue("mutated", []byte("x")))
		Eventually(ctx, l.writes).Should(Equal(counts{"create": 3}))
		Consistently(ctx, l.writes).WithTimeout(test.Quiet(time.Minute)).Should(Equal(counts{"create": 3}), l.String)
		Expect(f.Operator.Restart(ctx)).To(Succeed())
		Consistently(ctx, l.writes).WithTimeout(test.Quiet(time.Minute)).Should(Equal(counts{"create": 3}), l.String)
		change(ctx, f, s, func(s *corev1.Secret) { s.Data["key"] = []byte("2") })
		l.come(ctx, counts{"create": 3, "update": 3})
	})
})
