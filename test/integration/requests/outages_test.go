package requests_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/sudo"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// These cases stop processes of a World of their own, one after the other.
var _ = Describe("outages", Ordered, ContinueOnFailure, func() {
	var own *devcluster.World
	BeforeAll(func(ctx SpecContext) { own = startWorld(ctx) })

	It("REQ-E5 ends after a start what was ended while no operator ran", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		r := t.granted(ctx, "10m")
		Expect(t.Operator.Kill()).To(Succeed())
		Expect(t.decide(ctx, r, "mia", v1alpha1.SudoEnd)).To(Succeed())
		Expect(t.try(ctx, t.root)()).To(Succeed(), "the operator ends it, not the API server")
		Expect(t.Operator.Start(ctx)).To(Succeed())
		t.denied(ctx)
		t.says(ctx, r, v1alpha1.ReasonEnded, "by mia")
	})

	It("REQ-E1 ends the right at endTime while no operator runs", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		r := t.granted(ctx, "1m")
		end := t.read(ctx, r).Status.EndTime.Time
		Expect(t.Operator.Kill()).To(Succeed())
		Eventually(ctx, t.try(ctx, t.root), 2*time.Minute, 50*time.Millisecond).ShouldNot(Succeed())
		Expect(time.Now()).To(BeTemporally(">", end.Add(-2*time.Second)))
		Expect(t.Operator.Start(ctx)).To(Succeed())
		t.says(ctx, r, v1alpha1.ReasonTimeOver)
	})

	It("REQ-G11 makes one grant when the operator is killed in the middle of it, and writes nothing after it", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		for _, written := range []client.ObjectList{&batchv1.JobList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
			events, err := t.Admin().Watch(ctx, written, client.InNamespace(v1alpha1.SudoNamespace))
			Expect(err).NotTo(HaveOccurred())
			r := t.ask(ctx, "10m")
			t.approve(ctx, r, "mia")
			for event := range events.ResultChan() {
				if object, is := event.Object.(client.Object); is && object.GetName() == string(r.UID) {
					break
				}
			}
			events.Stop()
			Expect(t.Operator.Kill()).To(Succeed())
			Expect(t.Operator.Start(ctx)).To(Succeed())
			t.says(ctx, r, v1alpha1.ReasonGranted)
			job, role, binding := t.grant(ctx, r)
			Expect(role.OwnerReferences[0].UID).To(Equal(job.UID))
			Expect(binding.OwnerReferences[0].UID).To(Equal(job.UID))
			start := t.read(ctx, r).Status.StartTime
			end := job.Status.CompletionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second)
			Expect(end).To(BeTemporally("<=", start.Add(10*time.Minute+2*time.Second)))
			version := t.read(ctx, r).ResourceVersion
			Consistently(ctx, func() string { return t.read(ctx, r).ResourceVersion }, time.Second).Should(Equal(version))
			Expect(t.decide(ctx, r, "carol", v1alpha1.SudoEnd)).To(Succeed())
			t.denied(ctx)
		}
	})

	It("REQ-G7 grants nothing while no controller manager would end it, and then what was asked for", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		controllers := own.ControlPlane.Controllers
		Expect(controllers.Kill()).To(Succeed())
		r := t.ask(ctx, "10m")
		t.approve(ctx, r, "mia")
		t.says(ctx, r, v1alpha1.ReasonTimerMissing)
		_, role, binding := t.grant(ctx, r)
		Expect(role).To(BeNil())
		Expect(binding).To(BeNil())
		Expect(controllers.Start()).To(Succeed())
		t.says(ctx, r, v1alpha1.ReasonGranted)
	})

	It("REQ-E6 ends the right when the controller manager is down at endTime", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		r := t.granted(ctx, "1m")
		controllers := own.ControlPlane.Controllers
		Expect(controllers.Kill()).To(Succeed())
		end := t.read(ctx, r).Status.EndTime.Time
		Eventually(ctx, t.try(ctx, t.root), 2*time.Minute, 50*time.Millisecond).ShouldNot(Succeed())
		Expect(time.Now()).To(BeTemporally(">", end.Add(3*time.Second)))
		Eventually(ctx, t.Reasons(r)).Should(ContainElement("TimerLate"))
		t.says(ctx, r, v1alpha1.ReasonTimeOver)
		Expect(controllers.Start()).To(Succeed())
	})

	It("REQ-G8 grants nothing while the policy's binding doesn't deny, and grants when it does again", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "warren-sudo-requests"}}
		set := func(action admissionregistrationv1.ValidationAction) {
			Expect(t.Admin().Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
			binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{action}
			Expect(t.Admin().Update(ctx, binding)).To(Succeed())
		}
		r := t.ask(ctx, "10m")
		set(admissionregistrationv1.Audit)
		t.approve(ctx, r, "mia")
		t.says(ctx, r, v1alpha1.ReasonPolicyMissing, "doesn't deny")
		set(admissionregistrationv1.Deny)
		t.says(ctx, r, v1alpha1.ReasonGranted)
	})

	It("REQ-G14 grants nothing while a policy of the cluster rejects the timer, says so, and grants afterwards", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
		policy, binding := build.Policy(v1alpha1.SudoNamespace, admissionregistrationv1.Create, jobs, "false", "no Jobs here")
		t.Create(ctx, policy, binding)
		job := sudo.BuildTimer(request(t.root, "carol"), build.Tenant(t.root).Object(), time.Minute)
		job.Name, job.OwnerReferences = "tried", nil
		Eventually(ctx, func() error { return t.Admin().Create(ctx, job.DeepCopy(), client.DryRunAll) }).Should(beRefused("no Jobs here"))
		r := t.ask(ctx, "10m")
		t.approve(ctx, r, "mia")
		t.says(ctx, r, v1alpha1.ReasonTimerMissing, "no Jobs here")
		Expect(t.Admin().Delete(ctx, binding)).To(Succeed())
		t.says(ctx, r, v1alpha1.ReasonGranted)
		Expect(t.Admin().Delete(ctx, policy)).To(Succeed())
	})

	It("REQ-E9 ends the right with its LNamespace", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		t.granted(ctx, "10m")
		lns := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: t.root}}
		Expect(t.Admin().Delete(ctx, lns)).To(Succeed())
		t.denied(ctx)
	})

	It("REQ-G9 grants without approval where that is allowed, and warns on the request and the LNamespace", func(ctx SpecContext) {
		t := plant(ctx, own, func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests.BreakGlass = true })
		r := request(t.root, "carol")
		r.Spec.BreakGlass = true
		Expect(t.As("carol").Create(ctx, r)).To(Succeed())
		t.says(ctx, r, v1alpha1.ReasonGranted)
		Eventually(ctx, t.Reasons(r)).Should(ContainElement("BreakGlass"))
		lns := &v1alpha1.LNamespace{}
		Expect(t.Admin().Get(ctx, client.ObjectKey{Name: t.root}, lns)).To(Succeed())
		Eventually(ctx, t.Reasons(lns)).Should(ContainElement("BreakGlass"))
		t.change(ctx, func(s *v1alpha1.LNamespaceSpec) { s.SudoRequests.BreakGlass = false })
		again := request(t.root, "carol")
		again.Spec.BreakGlass = true
		Expect(t.As("carol").Create(ctx, again)).To(Succeed())
		t.says(ctx, again, v1alpha1.ReasonBreakGlassForbidden)
	})

	It("REQ-V3 reports without webhooks what is too long, too many, or asked for by somebody who is not eligible", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		t.says(ctx, t.ask(ctx, "5h"), v1alpha1.ReasonTooLong, "4h0m0s")
		for range 3 {
			t.says(ctx, t.ask(ctx, "10m"), v1alpha1.ReasonPending)
		}
		t.says(ctx, t.ask(ctx, "10m"), v1alpha1.ReasonTooMany, "maxOpen is 3")
		other := request(t.root, "mia")
		Expect(t.As("mia").Create(ctx, other)).NotTo(Succeed(), "approvers may not create requests")
		own := request(t.root, "admin")
		Expect(t.Admin().Create(ctx, own)).To(Succeed())
		t.says(ctx, own, v1alpha1.ReasonNotEligible)
	})
})
