package webhooks_test

import (
	"context"
	"crypto/tls"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	keeper "github.com/warren-tenancy/warren/controllers/certificate"
	"github.com/warren-tenancy/warren/internal/servingcert"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

var _ = Describe("A rotation", func() {
	It("SEC-X3 (`make test-long`) a certificate with 29 days left is replaced; meanwhile requests to all webhooks, one per 100 ms for 3 "+
		"min, never fail; each bundle then holds only another", func(ctx SpecContext) {
		if !test.IsLong() {
			Skip("it takes three minutes: with TEST_WINDOW=full")
		}
		w := start(ctx, devcluster.Options{})
		f := furnish(ctx, w)
		before := servingcert.Contents{Current: madeAt(time.Now().Add(-61*day), names...)}
		plant(ctx, w, before)
		Eventually(func() (bool, error) {
			contents, err := stored(ctx, w)
			return !contents.Next.Empty(), err
		}).Should(BeTrue(), "the next one is made")
		asking := ask(ctx, f.askedAbout())
		Eventually(asking.count).WithTimeout(4 * time.Minute).Should(BeNumerically(">=", 3*60*10))
		Expect(asking.stop()).To(BeEmpty())
		Expect(inForce(ctx, Default, w, w.WebhookPort).Equal(before)).To(BeFalse())
	}, SpecTimeout(8*time.Minute))

	// SEC-X3 with 15 s instead of a minute, in which a busy machine can start the other keeper. The leader changes in the middle.
	It("is noticed by nobody, whoever goes on with it", func(ctx SpecContext) {
		w := start(ctx, devcluster.Options{WithoutOperator: true})
		const settle = 15 * time.Second
		before := servingcert.Contents{Current: madeAt(time.Now().Add(-61*day), names...)}
		plant(ctx, w, before)
		elsewhere, err := process.FreePort()
		Expect(err).NotTo(HaveOccurred())
		leader := keep(ctx, w, elsewhere, settle)
		Eventually(ctx, stage).WithArguments(w).Should(Equal("next"))
		keep(ctx, w, w.WebhookPort, settle)
		Eventually(ctx, asked).WithArguments(w).Should(Succeed())

		asking := ask(ctx, map[string]request{
			"a tenant": func(ctx context.Context) error { return asked(ctx, w) },
			"a root": func(ctx context.Context) error {
				return w.Admin().Create(ctx, build.Root("is-asked-about"), client.DryRunAll)
			},
		})
		Expect(stage(ctx, w)).To(Or(Equal("next"), Equal("old")))
		leader() // ends, in the middle
		Eventually(ctx, stage).WithArguments(w).Should(Equal("old"))
		Eventually(ctx, func(g Gomega) {
			g.Expect(inForce(ctx, g, w, w.WebhookPort).Equal(before)).To(BeFalse())
		}).Should(Succeed())
		Expect(asking.count()).To(BeNumerically(">", 20))
		Expect(asking.stop()).To(BeEmpty())
	})
})

// stage says how far the rotation is, from what the Secret holds: next, old or neither.
func stage(ctx context.Context, w *devcluster.World) (string, error) {
	contents, err := stored(ctx, w)
	switch {
	case !contents.Next.Empty():
		return "next", err
	case len(contents.Old) > 0:
		return "old", err
	}
	return "", err
}

// keep runs the keeper of the certificate in this process, as the operator does but with another timing, and webhooks at
// that port that allow everything. It ends with the case, or when the returned function is called.
func keep(ctx context.Context, w *devcluster.World, port int, settle time.Duration) (stop func()) {
	GinkgoHelper()
	serving := &keeper.Serving{}
	elected, skip := true, true
	mgr, err := ctrl.NewManager(w.Config(controlplane.Operator), ctrl.Options{
		Scheme: devcluster.Scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		LeaderElection: elected, LeaderElectionID: "warren", LeaderElectionNamespace: "warren-system", LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.GetCertificate = serving.GetCertificate
		}}}),
	})
	Expect(err).NotTo(HaveOccurred())
	for _, path := range []string{"/mutate-tenancy-warren-dev-v1alpha1-lnamespace", "/validate-tenancy-warren-dev-v1alpha1-lnamespace",
		"/validate--v1-namespace"} {
		mgr.GetWebhookServer().Register(path, &webhook.Admission{Handler: admission.HandlerFunc(
			func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })})
	}
	Expect(keeper.SetupWithManager(ctx, mgr, keeper.Options{
		Namespace: "warren-system", Serving: serving, Events: mgr.GetEventRecorderFor("warren"), //nolint:staticcheck // as the operator
		Timing: keeper.Timing{Settle: settle, Retry: time.Second},
	})).To(Succeed())
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	over := false
	stop = func() {
		if !over {
			over = true
			cancel()
			Expect(<-ended).To(Succeed())
		}
	}
	DeferCleanup(func() { stop() })
	return stop
}
