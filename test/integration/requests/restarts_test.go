package requests_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// These cases stop processes of a World of their own, one after the other.
var _ = Describe("restarts", Ordered, ContinueOnFailure, func() {
	var own *devcluster.World
	BeforeAll(func(ctx SpecContext) { own = startWorld(ctx) })

	It("REQ-G5 grants the whole duration after an outage, and nothing after pendingFor", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		r := t.ask(ctx, "10m")
		Expect(t.Operator.Kill()).To(Succeed())
		t.approve(ctx, r, "mia")
		time.Sleep(3 * time.Second)
		up := time.Now()
		Expect(t.Operator.Start(ctx)).To(Succeed())
		t.says(ctx, r, v1alpha1.ReasonGranted)
		Expect(t.read(ctx, r).Status.EndTime.Time).To(BeTemporally(">=", up.Add(10*time.Minute-time.Second)))

		late := t.ask(ctx, "10m")
		Expect(t.Operator.Kill()).To(Succeed())
		t.approve(ctx, late, "mia")
		text := t.OperatorConfig
		DeferCleanup(func(ctx context.Context) { Expect(t.Operator.Configure(ctx, text)).To(Succeed()) })
		time.Sleep(3 * time.Second)
		Expect(t.Operator.WriteConfig(text + "\nsudo: {requests: {pendingFor: 2s}}\n")).To(Succeed())
		Expect(t.Operator.Start(ctx)).To(Succeed())
		t.says(ctx, late, v1alpha1.ReasonExpired, "pendingFor")
	})

	It("REQ-G6 counts no approval of a manager who has left the list before the grant", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		r := t.ask(ctx, "10m")
		Expect(t.Operator.Kill()).To(Succeed())
		t.approve(ctx, r, "mia")
		t.change(ctx, func(s *v1alpha1.LNamespaceSpec) { s.Managers = build.Users("lea") })
		Expect(t.Operator.Start(ctx)).To(Succeed())
		t.says(ctx, r, v1alpha1.ReasonPending, "1 more")
		_, role, binding := t.grant(ctx, r)
		Expect(role).To(BeNil())
		Expect(binding).To(BeNil())
	})

	It("REQ-H4 writes nothing after a restart beside many old requests and some grants", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		for range 100 {
			t.Create(ctx, request(t.root, "admin"))
		}
		for range 3 {
			t.granted(ctx, "10m")
		}
		last := request(t.root, "admin")
		t.Create(ctx, last)
		Eventually(ctx, t.reason(ctx, last), time.Minute).ShouldNot(BeEmpty())
		Expect(t.Operator.Kill()).To(Succeed())
		mark := t.Mark(ctx)
		Expect(t.Operator.Start(ctx)).To(Succeed())
		// A change that the operator reports shows that it has gone through what was there.
		r := t.ask(ctx, "10m")
		t.says(ctx, r, v1alpha1.ReasonTooMany)
		writes, err := t.Writes(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		for _, write := range writes {
			Expect(write.Name).To(Or(Equal(r.Name), BeEmpty()), "%s %s", write.Verb, write.Resource)
		}
	})

	It("REQ-S10 grants nothing that was asked of an LNamespace that another one has replaced", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		r := t.granted(ctx, "10m")
		Expect(t.Operator.Kill()).To(Succeed())
		lns := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: t.root}}
		t.Delete(ctx, lns)
		t.LetGo(ctx, lns)
		t.Gone(ctx, lns)
		root := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.root}}
		mark := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationAdopt+`":"true"}}}`))
		Expect(t.Admin().Patch(ctx, root, mark)).To(Succeed())
		again := build.Tenant(t.root).Managers("mia").Object()
		again.Spec.SudoRequests = &v1alpha1.SudoRequests{Eligible: build.Users("carol")}
		t.Create(ctx, again)
		t.denied(ctx) // by the garbage collector: the timer is the former LNamespace's
		Expect(t.Operator.Start(ctx)).To(Succeed())
		t.says(ctx, r, v1alpha1.ReasonTenantReplaced)
		t.denied(ctx)
	})

	It("REQ-E9 ends the right with its LNamespace while no operator runs", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		t.granted(ctx, "10m")
		Expect(t.Operator.Kill()).To(Succeed())
		lns := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: t.root}}
		t.Delete(ctx, lns)
		t.LetGo(ctx, lns)
		t.denied(ctx)
		Expect(t.Operator.Start(ctx)).To(Succeed())
	})

	It("REQ-E7 ends the right once the operator or the controller manager is back, if both were down at endTime", func(ctx SpecContext) {
		both := map[string]func(){
			"operator":           func() { Expect(own.Operator.Start(ctx)).To(Succeed()) },
			"controller manager": func() { Expect(own.ControlPlane.Controllers.Start()).To(Succeed()) },
		}
		for first, start := range both {
			t := plant(ctx, own, nil)
			r := t.granted(ctx, "1m")
			Expect(t.Operator.Kill()).To(Succeed())
			Expect(own.ControlPlane.Controllers.Kill()).To(Succeed())
			Eventually(ctx, time.Now, 2*time.Minute).Should(BeTemporally(">", t.read(ctx, r).Status.EndTime.Add(6*time.Second)))
			Expect(t.try(ctx, t.root)()).To(Succeed(), "nothing else in Kubernetes ends it")
			start()
			t.denied(ctx)
			for other, start := range both {
				if other != first {
					start()
				}
			}
			t.says(ctx, r, v1alpha1.ReasonTimeOver)
		}
	})

	It("REQ-E10 ends all rights when a cluster admin deletes namespace warren-sudo, and grants none without it", func(ctx SpecContext) {
		t := plant(ctx, own, nil)
		t.granted(ctx, "10m")
		namespace := &corev1.Namespace{}
		Expect(t.Admin().Get(ctx, client.ObjectKey{Name: v1alpha1.SudoNamespace}, namespace)).To(Succeed())
		t.Delete(ctx, namespace)
		t.denied(ctx)
		t.Gone(ctx, namespace)
		r := t.ask(ctx, "10m")
		t.approve(ctx, r, "mia")
		t.says(ctx, r, v1alpha1.ReasonTimerMissing, "the operator can't read what it makes in namespace warren-sudo")
		again := t.ask(ctx, "10m")
		Expect(t.Operator.Restart(ctx)).To(Succeed())
		t.approve(ctx, again, "mia")
		t.says(ctx, again, v1alpha1.ReasonTimerMissing)
	})
})
