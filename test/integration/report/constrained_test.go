package report_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/rights"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/words"
)

const constrained = "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\nsudo: {mode: Constrained}\n"

var _ = Describe("with constrained sudo", Ordered, ContinueOnFailure, func() {
	var own words.Cluster

	// raised lists pods of a namespace with sudo of payments. A review is another request, and its answer would not show this.
	raised := func(ctx SpecContext, person, user, namespace string) error {
		raised := own.Impersonate(person, rest.ImpersonationConfig{UserName: user, Groups: []string{"payments-sudoers"}})
		return raised.List(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	}

	BeforeAll(func(ctx SpecContext) {
		var err error
		own.World, err = devcluster.Start(ctx, devcluster.Options{
			ControlPlane: controlplane.Options{Users: map[string][]string{auditor: nil}}, Operator: devcluster.OperatorOptions{Config: constrained},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(own.Stop)
		own.Create(ctx, build.Tenant("payments").Users("alice").Sudoers("bob").SudoerSubjects(build.Group("pay-oncall")).Object())
		own.Ready(ctx, build.Tenant("payments").Object())
		grow(ctx, own, "payments", "pay-web")
		// The group's rights outside the tenant are useless for constrained sudo.
		own.Create(ctx, build.Namespace("annex"), build.RoleBinding("annex", "sudoers", "cluster-admin", build.RBACGroup("payments-sudoers")))
		letAudit(ctx, own)
		Eventually(func(g Gomega) {
			g.Expect(raised(ctx, "bob", "bob", "pay-web")).To(Succeed())
			g.Expect(raised(ctx, "otto", "warren:sudo:payments", "pay-web")).To(Succeed())
		}).WithContext(ctx).Should(Succeed())
	})

	It("the reports end where the API server does", func(ctx SpecContext) {
		for _, c := range []struct {
			person, user, subject, namespace string
			groups                           []string
			want                             rights.Answer
		}{
			{"bob", "bob", "bob", "payments", nil, rights.Yes},
			{"bob", "bob", "bob", "pay-web", nil, rights.Yes},
			{"bob", "bob", "bob", "annex", nil, rights.No},
			{"otto", "warren:sudo:payments", "pay-oncall", "pay-web", []string{"pay-oncall"}, rights.Yes},
			{"otto", "warren:sudo:payments", "pay-oncall", "annex", []string{"pay-oncall"}, rights.No},
			{"alice", "alice", "alice", "annex", nil, rights.No},
		} {
			err := raised(ctx, c.person, c.user, c.namespace)
			if c.want == rights.Yes {
				Expect(err).NotTo(HaveOccurred(), "%+v", c)
			} else {
				Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"), "%+v", c)
			}
			for _, caller := range []string{controlplane.Admin, auditor} {
				question := rights.Question{Verb: "list", Resource: "pods", Namespace: c.namespace}
				why, err := reporter(own.World, caller).Why(ctx, rights.Person(c.person, c.groups...), question)
				Expect(err).NotTo(HaveOccurred())
				Expect(why.Cases[1].Allowed).To(Equal(c.want), "%s asks about %+v", caller, c)
				who, err := reporter(own.World, caller).WhoCan(ctx, question, true)
				Expect(err).NotTo(HaveOccurred())
				sudoer := And(HaveField("Name", c.subject), HaveField("Sudo", true))
				if c.want == rights.Yes {
					Expect(who.Subjects).To(ContainElement(sudoer), "%s asks about %+v", caller, c)
				} else {
					Expect(who.Subjects).NotTo(ContainElement(sudoer), "%s asks about %+v", caller, c)
				}
			}
		}
	})

	It("access tells what sudo gives, and not how it is bound", func(ctx SpecContext) {
		out, problems, code := own.Kubectl(ctx, controlplane.Admin, "warren", "access", "payments", "-o", "wide")
		Expect(code).To(BeZero(), problems)
		Expect(out).To(MatchRegexp(row("User", "bob", "sudoers", "<none>", "cluster-admin, warren:edit:payments", "all")))
		Expect(out).To(MatchRegexp(row("Group", "pay-oncall", "sudoers", "<none>", "cluster-admin, warren:edit:payments", "all")))
		Expect(out).NotTo(ContainSubstring("impersonate-on"))
	})
})
