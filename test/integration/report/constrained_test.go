package report_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/report"
	"github.com/warren-tenancy/warren/test/controlplane"
)

var _ = Describe("constrained sudo", func() {
	// Here the review of a raised person would not do: the API server asks about the request itself before.
	It("reaches as far as the API server lets it", func(ctx SpecContext) {
		list := func(person, user, namespace string) error {
			raised := world.Impersonate(person, rest.ImpersonationConfig{UserName: user, Groups: []string{"vault-sudoers"}})
			return raised.List(ctx, &corev1.PodList{}, client.InNamespace(namespace))
		}
		Eventually(func() error { return list("sue", "sue", "vault") }).WithContext(ctx).Should(Succeed())
		Eventually(func() error { return list("kim", "warren:sudo:vault", "vault") }).WithContext(ctx).Should(Succeed())
		for _, c := range []struct {
			person, user, namespace string
			groups                  []string
			want                    report.Answer
		}{
			{"sue", "sue", "vault", nil, report.Yes},
			{"sue", "sue", "annex", nil, report.No},
			{"kim", "warren:sudo:vault", "vault", []string{"keepers"}, report.Yes},
			{"kim", "warren:sudo:vault", "annex", []string{"keepers"}, report.No},
			{"carol", "carol", "vault", nil, report.No},
		} {
			err := list(c.person, c.user, c.namespace)
			if c.want == report.Yes {
				Expect(err).NotTo(HaveOccurred(), "%+v", c)
			} else {
				Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"), "%+v", c)
			}
			for _, caller := range []string{controlplane.Admin, auditor} {
				question := report.Question{Verb: "list", Resource: "pods", Namespace: c.namespace}
				why, err := reporter(caller).Why(ctx, report.Person(c.person, c.groups...), question)
				Expect(err).NotTo(HaveOccurred())
				Expect(why.Cases[1].Allowed).To(Equal(c.want), "%s asks about %+v", caller, c)
				who, err := reporter(caller).WhoCan(ctx, question)
				Expect(err).NotTo(HaveOccurred())
				Expect(who.Subjects).To(HaveEach(HaveField("Name", Not(Equal("vault-sudoers")))))
				if c.want == report.No {
					Expect(who.Subjects).NotTo(ContainElement(HaveField("Name", c.person)))
				} else if c.groups == nil {
					Expect(who.Subjects).To(ContainElement(And(HaveField("Name", c.person), HaveField("Sudo", true))))
				}
			}
		}
	})
})
