package fault_test

import (
	"bytes"
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// certificateStory is FLT-S9. Its plans run one after another, because there is one certificate.
var certificateStory = story{id: "S9", title: "the certificate of the webhooks is replaced"}

// replaceCertificate empties the Secret, and waits until the API server trusts another certificate, with which the operator serves.
func (s *stage) replaceCertificate(ctx context.Context) {
	GinkgoHelper()
	secret := build.Secret("warren-system", "warren-webhook-cert", "")
	Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	before := secret.Data[corev1.TLSCertKey]
	secret.Data = nil
	Expect(s.Admin().Update(ctx, secret)).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		now := secret.Data[corev1.TLSCertKey]
		g.Expect(len(now) > 0 && !bytes.Equal(now, before)).To(BeTrue(), "the Secret holds another certificate")
		for _, bundle := range s.bundles(ctx, g) {
			g.Expect(string(bundle)).To(Equal(string(now)))
		}
		g.Expect(s.Admin().Create(ctx, build.Tenant("probe").Object(), client.DryRunAll)).To(Succeed())
	}).Should(Succeed())
}

// bundles are the CA bundles by which the API server trusts the webhooks.
func (s *stage) bundles(ctx context.Context, g Gomega) (all [][]byte) {
	var validating admissionv1.ValidatingWebhookConfiguration
	var mutating admissionv1.MutatingWebhookConfiguration
	g.Expect(s.Admin().Get(ctx, client.ObjectKey{Name: "warren"}, &validating)).To(Succeed())
	g.Expect(s.Admin().Get(ctx, client.ObjectKey{Name: "warren"}, &mutating)).To(Succeed())
	for _, webhook := range validating.Webhooks {
		all = append(all, webhook.ClientConfig.CABundle)
	}
	for _, webhook := range mutating.Webhooks {
		all = append(all, webhook.ClientConfig.CABundle)
	}
	return all
}

// replaceWith replaces the certificate while a write meets a fault, and returns how many writes the operator sent.
func (s *stage) replaceWith(ctx context.Context, plan plan) *counter {
	GinkgoHelper()
	c := &counter{stage: s, plan: plan, lives: map[int]int{}, blinded: s.blindings()}
	s.scripts.set(everything, c.decide)
	defer s.scripts.set(everything, nil)
	s.replaceCertificate(ctx)
	s.rests(ctx)
	return c
}

var _ = Describe("an operator that meets a fault while it replaces its certificate", func() {
	It(fmt.Sprintf("FLT-F01 after any fault while the webhooks' certificate is replaced, the operator serves with a new one that the API "+
		"server trusts; the fault explains each further write: story "+
		"%s, %s", certificateStory.id, certificateStory.title), func(ctx SpecContext) {
		st := newStage(ctx, devcluster.Options{Webhooks: true})
		st.replaceWith(ctx, plan{})
		calm := st.replaceWith(ctx, plan{})
		Expect(calm.objects).To(BeNumerically(">", 1), "the Secret and the configurations are written")
		before := st.now()
		var outcomes []outcome
		for _, plan := range certificateStory.plans(calm.writes) {
			c := st.replaceWith(ctx, plan)
			Expect(c.met).NotTo(BeEmpty(), plan.String())
			Expect(c.amplifies(calm.objects)).To(BeFalse(), plan.String())
			outcomes = append(outcomes, outcome{counter: c})
		}
		report(certificateStory, ending{writes: calm.writes, objects: calm.objects}, st.now()-before, outcomes)
		st.checkProcess()
	})
})
