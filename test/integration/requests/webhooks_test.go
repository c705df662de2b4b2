package requests_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// These cases need the webhooks of the component, and the plugin.
var _ = Describe("with webhooks", Ordered, ContinueOnFailure, func() {
	var own *devcluster.World
	BeforeAll(func(ctx SpecContext) {
		w, err := devcluster.Start(ctx, devcluster.Options{
			Components: []string{"config/components/requests"}, Webhooks: true,
			ControlPlane: controlplane.Options{Users: map[string][]string{"lea": {"pay-leads"}}},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		w.Plugins, err = devcluster.BuildPlugins(ctx)
		Expect(err).NotTo(HaveOccurred())
		own = w
	})

	It("REQ-V3 the webhook refuses with limit and number what would never be granted", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		refuse := func(user, says string, edit func(*v1alpha1.SudoRequestSpec)) {
			GinkgoHelper()
			r := request(t.root, user)
			edit(&r.Spec)
			Eventually(ctx, func() error { return t.As(user).Create(ctx, r.DeepCopy()) }).Should(beRefused(says))
		}
		refuse("carol", "5h is more than spec.sudoRequests.maxDuration of LNamespace "+t.root+" allows: 4h",
			func(s *v1alpha1.SudoRequestSpec) { s.Duration = "5h" })
		refuse("carol", "forbids sudo without approval", func(s *v1alpha1.SudoRequestSpec) { s.BreakGlass = true })
		for range 3 {
			t.ask(ctx, "10m")
		}
		refuse("carol", "carol has 3 open requests here, and sudo.requests.maxOpen is 3", func(*v1alpha1.SudoRequestSpec) {})
	})

	It("REQ-V4 the webhook fills in who asks and by which group; while it is down, nobody asks, and people decide by hand",
		func(ctx SpecContext) {
			t := plant(ctx, own, func(s *v1alpha1.LNamespaceSpec) {
				s.SudoRequests.Approvers = []v1alpha1.Subject{build.Group("pay-leads")}
			})
			bare := func() *v1alpha1.SudoRequest {
				r := request(t.root, "")
				return r
			}
			r := bare()
			Eventually(ctx, func() error { return t.As("otto").Create(ctx, r) }).Should(Succeed())
			Expect(r.Spec.User).To(Equal("otto"))
			Expect(r.Spec.Group).To(Equal("pay-oncall"))
			Expect(t.decide(ctx, r, "lea", v1alpha1.SudoApprove)).To(Succeed())
			Expect(t.read(ctx, r).Spec.Decisions).To(Equal([]v1alpha1.SudoDecision{
				{User: "lea", Group: "pay-leads", Verdict: v1alpha1.SudoApprove}}))
			t.says(ctx, r, v1alpha1.ReasonGranted)

			Expect(t.Operator.Kill()).To(Succeed())
			mine := bare()
			mine.Spec.User = "otto"
			mine.Spec.Group = "pay-oncall"
			Expect(t.As("otto").Create(ctx, mine)).To(beRefused("failed calling webhook"))
			Expect(t.decide(ctx, r, "mia", v1alpha1.SudoEnd)).To(Succeed())
			Expect(t.Operator.Start(ctx)).To(Succeed())
			t.says(ctx, r, v1alpha1.ReasonEnded, "by mia")
		})

	It("REQ-P1 ask, approve, use and end by kubectl sudo; without sudo, it says how to ask", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		kubectl := func(user string, args ...string) (string, int) {
			out, problems, code := t.Kubectl(ctx, user, args...)
			return out + problems, code
		}
		secrets := []string{"sudo", "get", "secrets", "-n", t.root}
		Eventually(ctx, func() string { text, _ := kubectl("carol", secrets...); return text }).Should(
			ContainSubstring("ask for it: kubectl sudo request --tenant " + t.root))
		waited := make(chan string, 1)
		go func() {
			defer GinkgoRecover()
			text, _ := kubectl("carol", "sudo", "request", "--tenant", t.root, "--reason", "Restore the ledger", "--for", "10m", "--wait")
			waited <- text
		}()
		name := ""
		Eventually(ctx, func() string {
			all := &v1alpha1.SudoRequestList{}
			if t.Admin().List(ctx, all, client.InNamespace(t.root)) == nil && len(all.Items) == 1 {
				name = all.Items[0].Name
			}
			return name
		}).ShouldNot(BeEmpty())
		text, code := kubectl("mia", "sudo", "approve", name, "--tenant", t.root, "--comment", "fine")
		Expect(code).To(Equal(0), text)
		Eventually(ctx, waited, time.Minute).Should(Receive(ContainSubstring("granted until")))
		Eventually(ctx, func() int { _, code := kubectl("carol", secrets...); return code }).Should(Equal(0))
		text, _ = kubectl("carol", "sudo", "list", "--tenant", t.root)
		Expect(strings.Fields(text)).To(ContainElements(name, "carol", "10m", "Granted"))
		text, code = kubectl("carol", "sudo", "end", "--tenant", t.root)
		Expect(code).To(Equal(0), text)
		Eventually(ctx, func() string { text, _ := kubectl("carol", secrets...); return text }).Should(
			ContainSubstring("you have no sudo in " + t.root + " now"))
	})
})
