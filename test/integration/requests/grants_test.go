package requests_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("grants", func() {
	It("REQ-G1 grants what was asked for and approved, by a timer, a Role and a RoleBinding, and to nobody else", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		t.Create(ctx, build.SubNamespace(t.root, t.root+"-web"))
		r := t.ask(ctx, "10m")
		t.says(ctx, r, v1alpha1.ReasonPending, "1 more")
		t.denied(ctx)
		t.approve(ctx, r, "mia")
		t.says(ctx, r, v1alpha1.ReasonGranted)
		Eventually(ctx, t.try(ctx, t.root)).Should(Succeed())
		Eventually(ctx, t.try(ctx, t.root+"-web")).Should(Succeed())
		Expect(t.As("carol").List(ctx, &corev1.SecretList{}, client.InNamespace(t.root))).To(MatchError(apierrors.IsForbidden, "is a 403"))

		job, role, binding := t.grant(ctx, r)
		Expect(*job.Spec.TTLSecondsAfterFinished).To(And(BeNumerically("<=", 600), BeNumerically(">", 590)))
		Expect(job.Status.CompletionTime).NotTo(BeNil())
		Expect(role.Rules).To(Equal([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"},
			Verbs: []string{"impersonate"}, ResourceNames: []string{t.root}}}))
		Expect(binding.Subjects).To(Equal([]rbacv1.Subject{build.RBACUser("carol")}))
		for _, object := range []client.Object{role, binding} {
			Expect(object.GetOwnerReferences()).To(HaveLen(1))
			Expect(object.GetOwnerReferences()[0].UID).To(Equal(job.UID))
		}
		is := t.read(ctx, r)
		end := job.Status.CompletionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second)
		Expect(is.Status.EndTime.Time).To(BeTemporally("==", end))
		Expect(is.Status.Timer).To(Equal(job.UID))
		Expect(is.Status.StartTime.Time).To(BeTemporally("<=", job.CreationTimestamp.Time))
	})

	It("REQ-G3 waits for the second approval where two are needed", func(ctx SpecContext) {
		t := plant(ctx, world.World, func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests.Approvals = 2 })
		r := t.ask(ctx, "10m")
		t.approve(ctx, r, "mia")
		Eventually(ctx, t.reason(ctx, r)).Should(ContainSubstring("1 more"))
		t.approve(ctx, r, "lea")
		t.says(ctx, r, v1alpha1.ReasonGranted)
	})

	It("REQ-G4 counts only approvals of listed approvers, by the group that they name", func(ctx SpecContext) {
		t := plant(ctx, world.World, func(s *v1alpha1.LNamespaceSpec) {
			s.SudoRequests.Approvers = []v1alpha1.Subject{build.Group("pay-leads")}
		})
		r := t.ask(ctx, "10m")
		t.approve(ctx, r, "mia")
		t.says(ctx, r, v1alpha1.ReasonPending)
		Consistently(ctx, t.reason(ctx, r), time.Second).Should(HavePrefix("Pending"))
		Expect(t.add(ctx, t.As("lea"), r, v1alpha1.SudoDecision{User: "lea", Group: "pay-leads", Verdict: v1alpha1.SudoApprove})).To(Succeed())
		t.says(ctx, r, v1alpha1.ReasonGranted)
	})

	It("REQ-G13 removes the RoleBindings and their copies when nobody is eligible any more", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		t.Create(ctx, build.SubNamespace(t.root, t.root+"-web"))
		copied := build.RoleBinding(t.root+"-web", "warren:sudo-requests", "")
		t.Exists(ctx, build.RoleBinding(t.root, "warren:sudo-requests", ""), copied)
		t.change(ctx, func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests = nil })
		t.Gone(ctx, build.RoleBinding(t.root, "warren:sudo-requests", ""), copied, build.RoleBinding(t.root, "warren:requesters", ""),
			build.RoleBinding(t.root, "warren:approvers", ""))
	})
})

var _ = Describe("ends", func() {
	It("REQ-E1 ends the right at endTime", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r := t.granted(ctx, "1m")
		end := t.read(ctx, r).Status.EndTime.Time
		Eventually(ctx, t.try(ctx, t.root), 2*time.Minute, 50*time.Millisecond).Should(MatchError(apierrors.IsForbidden, "is a 403"))
		Expect(time.Now()).To(BeTemporally(">", end.Add(-2*time.Second)))
		t.says(ctx, r, v1alpha1.ReasonTimeOver)
	})

	It("REQ-E2 ends the right when the requester or a manager ends it, or a manager denies it", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		for who, verdict := range map[string]v1alpha1.SudoVerdict{"carol": v1alpha1.SudoEnd, "mia": v1alpha1.SudoEnd, "lea": v1alpha1.SudoDeny} {
			r := t.granted(ctx, "10m")
			Expect(t.decide(ctx, r, who, verdict)).To(Succeed())
			t.denied(ctx)
			t.says(ctx, r, map[v1alpha1.SudoVerdict]v1alpha1.Reason{v1alpha1.SudoEnd: v1alpha1.ReasonEnded,
				v1alpha1.SudoDeny: v1alpha1.ReasonDenied}[verdict], "by "+who)
			Eventually(ctx, t.Messages(r, v1alpha1.ReasonSudoEnded)).Should(ContainElement(ContainSubstring("by " + who)))
		}
	})

	It("REQ-E3 ends the right of whoever is no longer eligible, for ever", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r := t.granted(ctx, "10m")
		t.change(ctx, func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests.Eligible = build.Users("otto") })
		t.denied(ctx)
		t.says(ctx, r, v1alpha1.ReasonNotEligible)
		t.change(ctx, func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests.Eligible = build.Users("carol") })
		Consistently(ctx, t.reason(ctx, r), 2*time.Second).Should(HavePrefix("NotEligible"))
	})

	It("REQ-E4 goes on when the approver leaves the managers", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		r := t.granted(ctx, "10m")
		t.change(ctx, func(s *v1alpha1.LNamespaceSpec) { s.Managers = build.Users("lea") })
		Consistently(ctx, t.try(ctx, t.root), 2*time.Second).Should(Succeed())
		t.says(ctx, r, v1alpha1.ReasonGranted)
	})

	It("REQ-E8 ends the right when a cluster admin deletes the timer, and what it owned though the timer left it", func(ctx SpecContext) {
		t := plant(ctx, world.World, nil)
		for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
			r := t.granted(ctx, "10m")
			job, _, _ := t.grant(ctx, r)
			Expect(t.Admin().Delete(ctx, job, client.PropagationPolicy(policy))).To(Succeed())
			t.denied(ctx)
			t.says(ctx, r, v1alpha1.ReasonEnded, "timer")
		}
	})
})
