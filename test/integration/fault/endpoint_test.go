package fault_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// impostors are servers that the API server may reach instead of the operator's webhooks. Each function returns the port.
var impostors = map[string]func(context.Context, *stage) int{
	"is down": func(context.Context, *stage) int {
		port, err := process.FreePort()
		Expect(err).NotTo(HaveOccurred())
		return port
	},
	"hangs": func(context.Context, *stage) int {
		listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nothing answers
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		return listener.Addr().(*net.TCPAddr).Port
	},
	"has a wrong certificate": func(context.Context, *stage) int { return answering(nil, http.StatusOK, "") },
	"answers 500": func(ctx context.Context, s *stage) int {
		return answering(s.webhookCertificate(ctx), http.StatusInternalServerError, "")
	},
	"gives an unreadable answer": func(ctx context.Context, s *stage) int {
		return answering(s.webhookCertificate(ctx), http.StatusOK, `{"kind":"AdmissionReview","response":[`)
	},
}

// webhookCertificate is the one with which the operator serves its webhooks.
func (s *stage) webhookCertificate(ctx context.Context) []tls.Certificate {
	GinkgoHelper()
	secret := build.Secret("warren-system", "warren-webhook-cert", "")
	Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	Expect(err).NotTo(HaveOccurred())
	return []tls.Certificate{pair}
}

// answering serves each request with that code and text, and returns the port. Without certificates, it uses one that the API server
// doesn't trust.
func answering(certificates []tls.Certificate, code int, text string) int {
	GinkgoHelper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log that the API server refuses the wrong certificate
	server.TLS = &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	DeferCleanup(server.Close)
	address, err := url.Parse(server.URL)
	Expect(err).NotTo(HaveOccurred())
	port, err := strconv.Atoi(address.Port())
	Expect(err).NotTo(HaveOccurred())
	return port
}

// callWebhooksAt has the API server call all webhooks at this port of their Service.
func (s *scene) callWebhooksAt(ctx context.Context, port int) {
	GinkgoHelper()
	at := int32(port)
	validating, mutating := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}
	validating.Name, mutating.Name = "warren", "warren"
	change(ctx, s, validating, func(c *admissionv1.ValidatingWebhookConfiguration) {
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.Service.Port = &at
		}
	})
	change(ctx, s, mutating, func(c *admissionv1.MutatingWebhookConfiguration) {
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.Service.Port = &at
		}
	})
}

// judgedSteps are steps of the stories that a webhook checks. All are dry runs.
func (s *scene) judgedSteps() map[string]func(context.Context) error {
	create := func(object client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return s.Admin().Create(ctx, object, client.DryRunAll) }
	}
	remove := func(object client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return s.Admin().Delete(ctx, object, client.DryRunAll) }
	}
	patch := func(object client.Object, text string) func(context.Context) error {
		return func(ctx context.Context) error {
			return s.Admin().Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(text)), client.DryRunAll)
		}
	}
	return map[string]func(context.Context) error{
		"S1":           create(build.Tenant(s.own("other")).Cascading().Object()),
		"S2":           patch(s.payments().Object(), `{"spec":{"sudoers":[]}}`),
		"S3":           remove(s.payments().Object()),
		"S4":           create(build.SubNamespace(s.own("payments"), s.own("mid"))),
		"S4, deletion": remove(build.SubNamespace(s.own("payments"), s.own("n0"))),
		"S5": patch(build.Namespace(s.own("plain")),
			fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelParent, s.own("payments"))),
		"S7":            patch(s.distribution("1"), `{"spec":{"suspend":true}}`),
		"S7, creation":  create(s.distributionNamed("more")),
		"S7, deletion":  remove(s.distribution("1")),
		"S8":            create(build.Hierarchy(s.own("plain"), build.Below(s.own("payments")))),
		"S8, and clear": patch(build.Hierarchy(s.own("payments")), `{"spec":{"requiredChildren":["`+s.own("required")+`"]}}`),
	}
}

func (s *scene) distributionNamed(name string) *v1alpha1.ResourceDistribution {
	rd := s.distribution("1")
	rd.Name = s.own(name)
	return rd
}

// refusesAll checks that each of these steps is refused. It sends all at once: some wait for a webhook's timeout.
func (s *scene) refusesAll(ctx context.Context) {
	GinkgoHelper()
	var all sync.WaitGroup
	for step, send := range s.judgedSteps() {
		all.Go(func() {
			defer GinkgoRecover()
			Eventually(ctx, send).Should(MatchError(ContainSubstring("failed calling webhook")), step)
		})
	}
	all.Wait()
}

var _ = Describe("an operator whose webhooks don't answer", Ordered, ContinueOnFailure, func() {
	var s *scene

	BeforeAll(func(ctx SpecContext) {
		st := newStage(ctx, devcluster.Options{Webhooks: true})
		s = st.scene("f29")
		s.withoutClaims = true
		Eventually(ctx, func() error { return s.Admin().Create(ctx, build.Tenant("probe").Object(), client.DryRunAll) }).Should(Succeed())
		family(ctx, s)
		plainNamespaces(ctx, s)
		s.create(ctx, build.Namespace(s.own("plain")), build.Hierarchy(s.own("payments")), s.distribution("1"))
		s.given(ctx, 6, "1")
	})

	for i, how := range slices.Sorted(maps.Keys(impostors)) {
		impostor, key := impostors[how], fmt.Sprint(i+1)
		It("FLT-F29 while the webhook endpoint is down, hangs, is untrusted, answers 500 or unreadably, requests that it should check are "+
			"refused; accepted ones are carried out, sources copied, namespaces deleted: it "+how, func(ctx SpecContext) {
			goes := build.Namespace(s.own("goes" + key))
			s.create(ctx, build.Child(goes.Name, s.own("payments")))

			// Accepted before the outage, and not yet carried out.
			s.HoldBack(func(r *http.Request) bool { return isWrite(r) && r.URL.Query().Get("dryRun") == "" }) // webhooks send dry runs
			s.create(ctx, build.SubNamespace(s.own("payments"), s.own("late"+key)))
			change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) { l.Spec.Sudoers = build.Users(s.own("sue" + key)) })
			change(ctx, s, s.distribution("1"), func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Resource = s.distribution(key).Spec.Resource })
			s.callWebhooksAt(ctx, impostor(ctx, s.stage))
			DeferCleanup(s.callWebhooksAt, s.WebhookPort)
			s.refusesAll(ctx)
			s.Release()

			s.bound(ctx, "payments", "late"+key)
			Eventually(ctx, s.sudoers).Should(ConsistOf(s.own("sue"+key)), s.explain)
			s.given(ctx, 6, key)
			s.create(ctx, s.source("s"+key, key)) // FLT-S6: no webhook judges sources
			s.copied(ctx, "n0", "s"+key, key)
			s.copied(ctx, "late"+key, "s"+key, key)
			s.remove(ctx, s.source("s"+key, ""))
			s.gone(ctx, build.Secret(s.own("n0"), "s"+key, ""))
			s.remove(ctx, goes) // an outage keeps no namespace alive
			s.gone(ctx, goes)
			s.refusesAll(ctx)
		})
	}

	It("FLT-F29 once the API server reaches the webhooks again, no request fails because of them", func(ctx SpecContext) {
		for step, send := range s.judgedSteps() {
			Eventually(ctx, func() string { return fmt.Sprint(send(ctx)) }).ShouldNot(ContainSubstring("failed calling webhook"), step)
		}
		s.checkProcess()
	})
})
