package guard_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/guard"
	"github.com/warren-tenancy/warren/internal/manifests"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

const head = "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n"

var _ = Describe("an operator", Ordered, func() {
	var o operator
	BeforeAll(func(ctx SpecContext) {
		o = start(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: head}})
	})

	binding := func(ctx context.Context, name string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
		b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		Expect(o.Admin().Get(ctx, client.ObjectKey{Name: name}, b)).To(Succeed())
		return b
	}
	put := func(ctx context.Context, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
		b = b.DeepCopy()
		b.ResourceVersion, b.UID, b.ManagedFields = "", "", nil
		o.Create(ctx, b)
	}

	It("SEC-X7 if the binding of policy managed-namespace is deleted or set to Audit: `warren_policy_gap` 1, an Event, and the policy's "+
		"name in readyz; restored: `warren_policy_gap` 0", func(ctx SpecContext) {
		const name = "managed-namespace"
		whole := binding(ctx, "warren-"+name)
		Eventually(o.gap(name)).WithContext(ctx).Should(BeZero())
		Eventually(o.readiness).WithContext(ctx).ShouldNot(ContainSubstring("warren-"))
		told := 0
		expect := func(why string) {
			GinkgoHelper()
			Expect(o.Operator.Restart(ctx)).To(Succeed())
			Eventually(o.gap(name)).WithContext(ctx).Should(Equal(1.0))
			sentence := "policy warren-managed-namespace is not fully in force, or can't be checked: binding warren-managed-namespace " + why
			Eventually(o.readiness).WithContext(ctx).Should(ContainSubstring("[!]" + sentence + "\n"))
			told++
			Eventually(o.events(v1alpha1.ReasonPolicyMissing)).WithContext(ctx).Should(And(HaveLen(told), ContainElement(sentence)))
			Expect(o.gap("reserved-keys")(ctx)).To(BeZero(), "of one policy, not of all")
		}
		By("its binding is deleted")
		Expect(o.Admin().Delete(ctx, whole)).To(Succeed())
		expect("is missing: apply config/policy")

		By("its binding only audits")
		audit := whole.DeepCopy()
		audit.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
		put(ctx, audit)
		expect("doesn't deny (validationActions: Audit): apply config/policy")

		By("meanwhile tenants are served")
		o.Create(ctx, build.Root("x7"), build.Child("x7-a", "x7"), build.Source(build.Secret("x7", "s", "1"), v1alpha1.ModeUpdate))
		Eventually(func(ctx context.Context) error {
			return o.Admin().Get(ctx, client.ObjectKey{Namespace: "x7-a", Name: "s"}, &corev1.Secret{})
		}).WithContext(ctx).Should(Succeed())

		By("it is back")
		Expect(o.Admin().Delete(ctx, audit)).To(Succeed())
		put(ctx, whole)
		Expect(o.Operator.Restart(ctx)).To(Succeed())
		Eventually(o.gap(name)).WithContext(ctx).Should(BeZero())
		Eventually(o.readiness).WithContext(ctx).ShouldNot(ContainSubstring("warren-"))
		Consistently(o.events(v1alpha1.ReasonPolicyMissing)).WithContext(ctx).WithTimeout(test.Quiet(5 * time.Second)).Should(HaveLen(told))
	})

	// SEC-X7 while the operator runs: it checks the policies every ten minutes, here more often.
	It("looks again and again", func(ctx SpecContext) {
		events := record.NewFakeRecorder(10)
		other := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guard-test"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)),
				RenewTime: new(metav1.NowMicro())},
		}
		o.Create(ctx, other)
		mgr, err := ctrl.NewManager(o.Config(controlplane.Admin), ctrl.Options{
			Scheme: devcluster.Scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
			LeaderElection: true, LeaderElectionID: other.Name, LeaderElectionNamespace: other.Namespace, RetryPeriod: new(200 * time.Millisecond),
		})
		Expect(err).NotTo(HaveOccurred())
		g := &guard.Guard{
			Live: o.As(controlplane.Operator), Mapper: o.Admin().RESTMapper(), Events: events,
			Kinds:      []schema.GroupKind{{Kind: "Secret"}, {Group: "example.com", Kind: "NotServed"}},
			Deployment: guard.Deployment("warren-system"), Timing: guard.Timing{Interval: 200 * time.Millisecond, Retry: 200 * time.Millisecond},
		}
		Expect(g.SetupWithManager(mgr)).To(Succeed())
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(running) }()
		Consistently(g.Notes).WithTimeout(test.Quiet(time.Second)).Should(BeEmpty())

		access := binding(ctx, "warren-copy-access")
		Expect(o.Admin().Delete(ctx, access)).To(Succeed())
		Eventually(g.Missing).WithArguments(manifests.Copy).Should(BeTrue())
		Expect(g.Missing("reserved-keys")).To(BeFalse())
		Expect(g.Notes()).To(ConsistOf("policy warren-copy is not fully in force, or can't be checked: binding warren-copy-access is missing: " +
			"apply config/policy"))
		Consistently(events.Events).WithTimeout(test.Quiet(time.Second)).ShouldNot(Receive(), "a standby sends no Event")
		Expect(o.Admin().Delete(ctx, other)).To(Succeed()) // the guard's replica leads now
		Eventually(events.Events).Should(Receive(Equal("Warning PolicyMissing " + g.Notes()[0])))
		put(ctx, access)
		Eventually(g.Missing).WithArguments(manifests.Copy).Should(BeFalse())
		Consistently(events.Events).WithTimeout(test.Quiet(time.Second)).ShouldNot(Receive(), "one Event for one transition")
		stop()
		Eventually(ended).Should(Receive(BeNil()))
	})

	It("tells of a kind that the policies don't list, until what is generated for it is applied", func(ctx SpecContext) {
		wider := head + "propagation:\n  kinds: [{kind: Secret}, {kind: ConfigMap}, {kind: LimitRange}]\n"
		Expect(o.Operator.Configure(ctx, wider)).To(Succeed())
		for _, policy := range []string{"copy", "operator-cage-objects"} {
			Eventually(o.gap(policy)).WithContext(ctx).Should(Equal(1.0))
		}
		Eventually(o.readiness).WithContext(ctx).
			Should(ContainSubstring("policy warren-copy is not fully in force, or can't be checked: it doesn't list limitranges, which the " +
				"configuration names"))
		Expect(o.gap("source-keys")(ctx)).To(BeZero())

		generated, err := devcluster.KindsOf(wider)
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, o.Config(controlplane.Admin), generated)).To(Succeed())
		Expect(o.Operator.Configure(ctx, wider+"concurrency: 16\n# the same, which is looked at again\ntenants: {maxPerCreator: 7}\n")).
			To(Succeed())
		for _, policy := range []string{"copy", "operator-cage-objects"} {
			Eventually(o.gap(policy)).WithContext(ctx).Should(BeZero())
		}
		By("the kind is propagated, and its copies are nobody's to change")
		limits := build.Source(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "kinds", Name: "l"}}, v1alpha1.ModeUpdate)
		o.Create(ctx, build.Root("kinds"), build.Child("kinds-a", "kinds"), limits)
		found := &corev1.LimitRange{}
		Eventually(func(ctx context.Context) error {
			return o.Admin().Get(ctx, client.ObjectKey{Namespace: "kinds-a", Name: "l"}, found)
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(ctx context.Context) error {
			return o.Admin().Update(ctx, build.Labelled(found.DeepCopy(), "foreign", "x"), client.DryRunAll)
		}).WithContext(ctx).Should(And(MatchError(apierrors.IsForbidden, "is a 403"), MatchError(ContainSubstring("l is a copy of kinds/l"))))
	})

	It("counts what its own cage refuses, and leaves no orphan", func(ctx SpecContext) {
		never, fail := admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.Fail
		policy := &admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "strip-labels"},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				FailurePolicy: &fail, ReinvocationPolicy: never,
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
					}}}},
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "ours",
					Expression: "'tenancy.warren.dev/inherited-from' in object.metadata.?labels.orValue({})"}},
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType: admissionregistrationv1.PatchTypeJSONPatch,
					JSONPatch: &admissionregistrationv1.JSONPatch{Expression: `[JSONPatch{op: "remove", path: "/metadata/labels"}]`},
				}},
			},
		}
		bound := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
		}
		if err := o.Admin().Create(ctx, policy, client.DryRunAll); meta.IsNoMatchError(err) {
			Skip("MutatingAdmissionPolicy is served from Kubernetes 1.36 on")
		}
		o.Create(ctx, build.Root("w4"), policy, bound)
		Eventually(func(ctx context.Context) (map[string]string, error) {
			probe := build.ConfigMap("w4", "probe", "x", v1alpha1.LabelInheritedFrom, "x")
			err := o.As(controlplane.Operator).Create(ctx, probe, client.DryRunAll)
			if err != nil && strings.Contains(err.Error(), "carries its mark") {
				err = nil
				probe.Labels = nil
			}
			return probe.Labels, err
		}).WithContext(ctx).Should(BeEmpty(), "labels are stripped")
		refusals := func(ctx context.Context) (float64, error) {
			metrics, err := o.Operator.Metrics(ctx)
			return metrics.Value("warren_cage_refusals_total", map[string]string{"policy": "operator-cage-objects"}), err
		}
		Expect(refusals(ctx)).To(BeZero())
		o.Create(ctx, build.Child("w4-a", "w4"), build.Source(build.ConfigMap("w4", "m", "1"), v1alpha1.ModeUpdate))
		Eventually(refusals).WithContext(ctx).Should(BeNumerically(">", 0))
		Eventually(o.events(v1alpha1.ReasonCageRefused)).WithContext(ctx).Should(ConsistOf(And(
			ContainSubstring("warren-operator-cage-objects"), ContainSubstring("whatever the operator writes carries its mark"))))
		stands := func(ctx context.Context) error {
			return o.Admin().Get(ctx, client.ObjectKey{Namespace: "w4-a", Name: "m"}, &corev1.ConfigMap{})
		}
		Consistently(stands).WithContext(ctx).WithTimeout(test.Quiet(5 * time.Second)).Should(MatchError(apierrors.IsNotFound, "is a 404"))
		Eventually(refusals).WithContext(ctx).Should(BeNumerically(">", 1), "it is tried again")
		Expect(o.Admin().Delete(ctx, bound)).To(Succeed())
		Eventually(stands).WithContext(ctx).Should(Succeed())
	})

	It("PROP-A2 a leaf with copies that kubectl deletes is gone within 20 s, with "+
		"the operator running and with it stopped", func(ctx SpecContext) {
		o.Create(ctx, build.Root("a2"), build.Child("a2-running", "a2"), build.Child("a2-stopped", "a2"),
			build.Source(build.Secret("a2", "s", "1"), v1alpha1.ModeUpdate), build.Source(build.ConfigMap("a2", "m", "1"), v1alpha1.ModeUpdate),
			build.Source(build.RoleBinding("a2", "b", "view", build.RBACUser("alice")), v1alpha1.ModeUpdate))
		goes := func(name string) {
			GinkgoHelper()
			_, problems, code := o.Kubectl(ctx, controlplane.Admin, "delete", "namespace", name, "--wait=false")
			Expect(code).To(BeZero(), problems)
			Eventually(func(ctx context.Context) bool {
				return apierrors.IsNotFound(o.Admin().Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}))
			}).WithContext(ctx).Should(BeTrue(), "%s is gone", name)
		}
		for _, name := range []string{"a2-running", "a2-stopped"} {
			for _, object := range []client.Object{build.Secret(name, "s", ""), build.ConfigMap(name, "m", ""),
				build.RoleBinding(name, "b", "view")} {
				Eventually(func(ctx context.Context) error { return o.Admin().Get(ctx, client.ObjectKeyFromObject(object), object) }).
					WithContext(ctx).Should(Succeed())
			}
		}
		goes("a2-running")
		_, err := o.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		goes("a2-stopped")
	})
})
