package webhooks_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/servingcert"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
	"github.com/warren-tenancy/warren/test/suite"
)

// within is how long the cases wait for a certificate or a bundle to be put right. The specification says 10 s, which a test can't check
// on a busy machine.
const within = suite.Patience

var _ = Describe("The certificate of two replicas", Ordered, func() {
	var (
		w        *devcluster.World
		ports    []int
		replicas []*devcluster.Operator
		last     servingcert.Contents // what was in force last
	)
	// replaced checks that another certificate came into force, and that each replica still runs.
	replaced := func(ctx context.Context, what string) {
		GinkgoHelper()
		before := last
		Eventually(func(g Gomega) {
			last = inForce(ctx, g, w, ports...)
			g.Expect(last.Equal(before)).To(BeFalse(), "nothing was replaced")
		}).WithTimeout(within).Should(Succeed(), what)
		for _, replica := range replicas {
			Expect(replica.Process().Running()).To(BeTrue())
		}
	}

	BeforeAll(func(ctx SpecContext) {
		w = start(ctx, devcluster.Options{WithoutOperator: true, Operator: devcluster.OperatorOptions{Args: []string{"--leader-elect"}}})
	})

	AfterAll(func() {
		if len(replicas) > 1 { // the World stops the other one
			_, err := replicas[1].Stop()
			Expect(err).NotTo(HaveOccurred())
			Expect(replicas[1].Sound()).To(Succeed())
		}
	})

	It("SEC-X1 Secret warren-webhook-cert is empty, and two replicas start: one certificate is made, both serve it, and caBundle is set "+
		"within 10 s", func(ctx SpecContext) {
		empty, err := stored(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(empty.Equal(servingcert.Contents{})).To(BeTrue())
		mark, err := w.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())

		leader, err := w.StartOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
		other, err := process.FreePort()
		Expect(err).NotTo(HaveOccurred())
		standby, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
			Kubeconfig: w.Kubeconfig(controlplane.Operator), Dir: filepath.Join(w.Dir, "standby"),
			WebhookPort: other, Args: []string{"--leader-elect"},
		})
		Expect(err).NotTo(HaveOccurred())
		ports, replicas = []int{w.WebhookPort, other}, []*devcluster.Operator{leader, standby}

		Eventually(func(g Gomega) { last = inForce(ctx, g, w, ports...) }).WithTimeout(within).Should(Succeed())
		writes, err := w.Writes(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(lines(writes)).To(ConsistOf(
			HavePrefix("update secrets warren-system/warren-webhook-cert 200"),
			HavePrefix("patch validatingwebhookconfigurations warren 200"),
			HavePrefix("patch mutatingwebhookconfigurations warren 200"),
			HavePrefix("update configmaps warren-system/warren-accepted-config 200"), // not about the certificate
		))
		for i, replica := range replicas {
			pair, err := servingcert.Judge(last.Current, names, time.Now())
			Expect(err).NotTo(HaveOccurred())
			Eventually(func(g Gomega) {
				metrics, err := replica.Metrics(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(metrics.Value("warren_certificate_expiry_timestamp_seconds", nil)).To(BeEquivalentTo(pair.Leaf.NotAfter.Unix()))
				g.Expect(metrics.Value("warren_certificate_rotations_total", map[string]string{"result": "success"})).To(BeEquivalentTo(1 - i))
			}).Should(Succeed())
		}
		Eventually(events).WithArguments(ctx, w).
			Should(ContainElement(HavePrefix("Normal CertificateRotated Deployment/warren-controller-manager")))
	})

	It("SEC-X2 a certificate is replaced within 10 s, without restart: if it is garbage, expired, of a wrong SAN, or its Secret was "+
		"deleted and made empty again; SEC-X2 if the clock of the API server's node is 30 min behind, the API server accepts the "+
		"certificate as it is", func(ctx SpecContext) {
		first, err := servingcert.Judge(last.Current, names, time.Now())
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Leaf.NotBefore).To(BeTemporally("<", time.Now().Add(-59*time.Minute)))

		plant(ctx, w, servingcert.Contents{Current: servingcert.Pair{Certificate: []byte("garbage"), Key: []byte("garbage")}})
		replaced(ctx, "garbage")

		secret := secretObject()
		Expect(w.Admin().Delete(ctx, secret)).To(Succeed())
		// While the Secret is gone, the operator reports it, and serves the certificate that it has.
		Eventually(events).WithArguments(ctx, w).Should(ContainElement(SatisfyAll(
			HavePrefix("Warning CertificateFailed Deployment/warren-controller-manager"), ContainSubstring("warren-webhook-cert is missing"))))
		Expect(asked(ctx, w)).To(Succeed())
		Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), shipped("Secret"))).To(Succeed())
		replaced(ctx, "deleted and made empty again")

		plant(ctx, w, servingcert.Contents{Current: madeAt(time.Now().Add(-100*day), names...)})
		replaced(ctx, "expired")

		plant(ctx, w, servingcert.Contents{Current: madeAt(time.Now(), "warren-webhook.elsewhere.svc")})
		replaced(ctx, "another name")

		// The clock of the API server's node is half an hour behind the operator's: a new certificate begins half an hour in its future.
		ahead := servingcert.Contents{Current: madeAt(time.Now().Add(30*time.Minute), names...)}
		plant(ctx, w, ahead)
		replaced(ctx, "made by a clock half an hour ahead")
		Expect(last.Equal(ahead)).To(BeTrue(), "it works as it is")
	})

	It("SEC-X4 caBundle that is edited by hand or by a tool is right again within 10 s, by one write for each edit", func(ctx SpecContext) {
		foreign := madeAt(time.Now(), names...).Certificate
		for round, edit := range []func(){
			func() { // by hand
				patch := fmt.Sprintf(`[{"op":"replace","path":"/webhooks/2/clientConfig/caBundle","value":%q}]`,
					base64.StdEncoding.EncodeToString(foreign))
				_, stderr, code := w.Kubectl(ctx, controlplane.Admin, "patch", "validatingwebhookconfiguration/warren", "--type=json", "-p", patch)
				Expect(code).To(BeZero(), stderr)
			},
			// By a tool that takes ownership of the whole object, twice.
			func() { applyBundle(ctx, w, foreign) },
			func() { applyBundle(ctx, w, foreign) },
			func() { // by a tool that replaces the whole object
				hooks := &admissionv1.ValidatingWebhookConfiguration{}
				Expect(w.Admin().Get(ctx, client.ObjectKey{Name: "warren"}, hooks)).To(Succeed())
				for i := range hooks.Webhooks {
					hooks.Webhooks[i].ClientConfig.CABundle = nil
				}
				Expect(w.Admin().Update(ctx, hooks)).To(Succeed())
			},
		} {
			mark, err := w.Mark(ctx)
			Expect(err).NotTo(HaveOccurred())
			edit()
			Eventually(func(g Gomega) {
				g.Expect(inForce(ctx, g, w, ports...).Equal(last)).To(BeTrue())
			}).WithTimeout(within).Should(Succeed(), "edit %d", round)
			Consistently(func(g Gomega) {
				writes, err := w.Writes(ctx, mark)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(lines(writes)).To(ConsistOf(HavePrefix("patch validatingwebhookconfigurations warren 200")))
			}).WithTimeout(test.Quiet(time.Minute)).Should(Succeed(), "edit %d", round)
		}
		metrics, err := replicas[0].Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
			Expect(metrics.Value("warren_webhook_ca_synced", map[string]string{"configuration": kind})).To(BeEquivalentTo(1), kind)
		}
	}, SpecTimeout(6*time.Minute))

	It("says so when it may not be written, and is written when it may", func(ctx SpecContext) {
		// forbid adds a policy of the cluster that forbids the write.
		forbid := func(resource string) (lift func()) {
			GinkgoHelper()
			policy, binding := obstacle(resource)
			Expect(w.Admin().Create(ctx, policy)).To(Succeed())
			Expect(w.Admin().Create(ctx, binding)).To(Succeed())
			return func() { Expect(w.Admin().Delete(ctx, binding)).To(Succeed()) }
		}
		inTheWay := func(g Gomega, object client.Object) {
			err := w.As(controlplane.Operator).Patch(ctx, object, client.RawPatch("application/json-patch+json", []byte("[]")), client.DryRunAll)
			g.Expect(err).To(MatchError(ContainSubstring("an obstacle")))
		}
		failures := func(what string) {
			GinkgoHelper()
			Eventually(events).WithArguments(ctx, w).Should(ContainElement(SatisfyAll(
				HavePrefix("Warning CertificateFailed Deployment/warren-controller-manager"), ContainSubstring(what), ContainSubstring("an obstacle"))))
		}

		lift := forbid("mutatingwebhookconfigurations")
		hooks := &admissionv1.MutatingWebhookConfiguration{}
		Eventually(func(g Gomega) {
			g.Expect(w.Admin().Get(ctx, client.ObjectKey{Name: "warren"}, hooks)).To(Succeed())
			inTheWay(g, hooks)
		}).Should(Succeed())
		Expect(w.Admin().Get(ctx, client.ObjectKey{Name: "warren"}, hooks)).To(Succeed())
		hooks.Webhooks[0].ClientConfig.CABundle = nil
		Expect(w.Admin().Update(ctx, hooks)).To(Succeed())
		failures("writing the caBundle of MutatingWebhookConfiguration warren")
		synced := func() (float64, error) {
			metrics, err := replicas[0].Metrics(ctx)
			return metrics.Value("warren_webhook_ca_synced", map[string]string{"configuration": "MutatingWebhookConfiguration"}), err
		}
		Eventually(synced).Should(BeZero())
		lift()
		Eventually(func(g Gomega) { g.Expect(inForce(ctx, g, w, ports...).Equal(last)).To(BeTrue()) }).Should(Succeed())
		Eventually(synced).Should(BeEquivalentTo(1))
	})

	// By such a failure the keeper knows that another client wrote in between, and that nothing is wrong.
	It("is written by a test of the resourceVersion, whose failure says nothing of the object", func(ctx SpecContext) {
		hooks := &admissionv1.ValidatingWebhookConfiguration{}
		hooks.Name = "warren"
		for value, causes := range map[string]types.GomegaMatcher{
			`{"op":"test","path":"/metadata/resourceVersion","value":"1"}`:    BeEmpty(),
			`{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":99}`: Not(BeEmpty()),
		} {
			err := w.Admin().Patch(ctx, hooks.DeepCopy(), client.RawPatch("application/json-patch+json", []byte("["+value+"]")))
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", value, err)
			var status apierrors.APIStatus
			Expect(errors.As(err, &status)).To(BeTrue())
			Expect(status.Status().Details.Causes).To(causes, value)
		}
	})

	It("survives a second make deploy", func(ctx SpecContext) {
		text, err := shipped("Secret")[0].MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		for range 2 { // the first one adds kubectl's annotation of what it applied
			_, stderr, code := w.KubectlWith(ctx, controlplane.Admin, string(text), "apply", "-f", "-")
			Expect(code).To(BeZero(), stderr)
		}
		contents, err := stored(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(contents.Equal(last)).To(BeTrue())
	})
})

// shipped are the objects of that kind as config/webhook has them.
func shipped(kind string) devcluster.Manifests {
	GinkgoHelper()
	manifests, err := devcluster.Render("config/webhook")
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(manifests, func(u *unstructured.Unstructured) bool { return u.GetKind() != kind })
}

// applyBundle applies the validating configuration as a GitOps tool does, with that caBundle in every webhook.
func applyBundle(ctx context.Context, w *devcluster.World, bundle []byte) {
	GinkgoHelper()
	object := shipped("ValidatingWebhookConfiguration")[0]
	hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	Expect(err).NotTo(HaveOccurred())
	for _, hook := range hooks {
		hook := hook.(map[string]any)
		Expect(unstructured.SetNestedField(hook, int64(w.WebhookPort), "clientConfig", "service", "port")).To(Succeed())
		Expect(unstructured.SetNestedField(hook, base64.StdEncoding.EncodeToString(bundle), "clientConfig", "caBundle")).To(Succeed())
	}
	Expect(unstructured.SetNestedSlice(object.Object, hooks, "webhooks")).To(Succeed())
	Expect(w.Admin().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner("a-gitops-tool"), client.ForceOwnership)).To(Succeed())
}

// obstacle is a policy that refuses the operator's updates of a resource of admissionregistration.k8s.io.
func obstacle(resource string) (client.Object, client.Object) {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "obstacle"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{admissionv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{resource}},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("request.userInfo.username != %q", controlplane.Operator), Message: "an obstacle",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "obstacle"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "obstacle", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	return policy, binding
}

// lines are requests as text.
func lines(requests []audit.Request) []string {
	var all []string
	for _, r := range requests {
		all = append(all, r.String())
	}
	return all
}

// events are those of the operator's namespace, as `TYPE REASON KIND/NAME: MESSAGE`.
func events(ctx context.Context, w *devcluster.World) ([]string, error) {
	list := &corev1.EventList{}
	err := w.Admin().List(ctx, list, client.InNamespace("warren-system"))
	var all []string
	for _, e := range list.Items {
		all = append(all, fmt.Sprintf("%s %s %s/%s: %s", e.Type, e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message))
	}
	return all, err
}
