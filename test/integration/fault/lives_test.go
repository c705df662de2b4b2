package fault_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/gate"
)

// livesCases are the cases in which namespaces and kinds are deleted and made again.
var livesCases = []faultCase{
	{"F21a", "has a target that terminates before it is written to", func(ctx context.Context, s *scene) { terminates(ctx, s, "before") }},
	{"F21b", "has a target that terminates at the moment of its write", func(ctx context.Context, s *scene) { terminates(ctx, s, "between") }},
	{"F21c", "has a target that terminates after it was written to", func(ctx context.Context, s *scene) { terminates(ctx, s, "after") }},
	{"F21d", "has a target of a ResourceDistribution that terminates", distributedTerminates},
	{"F22", "is asked for a name whose namespace terminates for ever", terminatesForEver},
	{"F24", "has parent and child deleted at once, and the child hangs", bothDeleted},
	{"F25", "has a namespace deleted and made again many times", madeAgain},
	{"F28", "loses the CRD of a kind that it copies, and gets it back", customKindGoes},
}

// hold puts a ConfigMap with a finalizer into a namespace, so that the namespace terminates only after letGo.
func (s *scene) hold(ctx context.Context, namespace string) (letGo func()) {
	GinkgoHelper()
	held := build.Held(build.ConfigMap(namespace, "held", ""))
	s.create(ctx, held)
	return func() {
		GinkgoHelper()
		Eventually(ctx, func() error {
			err := s.Admin().Get(ctx, client.ObjectKeyFromObject(held), held)
			if err != nil {
				return client.IgnoreNotFound(err)
			}
			held.SetFinalizers(nil)
			return s.Admin().Update(ctx, held)
		}).Should(Succeed())
	}
}

// condemn deletes a namespace, and waits until it terminates.
func (s *scene) condemn(ctx context.Context, namespace string) {
	GinkgoHelper()
	s.remove(ctx, build.Namespace(namespace))
	Eventually(ctx, func(g Gomega) {
		n := build.Namespace(namespace)
		g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(n), n)).To(Succeed())
		g.Expect(n.Status.Phase).To(Equal(corev1.NamespaceTerminating))
	}).Should(Succeed())
}

func terminates(ctx context.Context, s *scene, when string) {
	s.bush(ctx)
	letGo := s.hold(ctx, s.own("n0"))
	value := "1"
	switch when {
	case "before":
		s.condemn(ctx, s.own("n0"))
	case "after":
		s.create(ctx, s.source("s", "1"))
		s.copied(ctx, "n0", "s", "1")
		s.condemn(ctx, s.own("n0"))
		value = "2"
	}
	sent := &recorder{}
	s.scripts.set(s.key, func(q gate.Request) (gate.Fault, bool) {
		if !isWrite(q.Request) || !strings.Contains(q.URL.Path, "/"+s.own("n0")+"/") {
			return gate.Fault{}, false
		}
		if sent.record(q) == 1 && when == "between" {
			s.condemn(ctx, s.own("n0"))
		}
		return gate.Fault{}, false
	})
	if when == "after" {
		change(ctx, s, s.source("s", ""), func(o *corev1.Secret) { o.Data["key"] = []byte(value) })
	} else {
		s.create(ctx, s.source("s", value))
	}
	s.copied(ctx, "n1", "s", value)
	s.copied(ctx, "n2", "s", value)
	Consistently(ctx, sent.count).WithTimeout(time.Minute).WithPolling(time.Second).
		Should(BeNumerically("<=", 1), "0 retries until it changes")
	s.noTrouble(ctx, "payments")
	letGo()
	s.gone(ctx, build.Namespace(s.own("n0")))
	s.create(ctx, build.Child(s.own("n0"), s.own("payments")))
	s.copied(ctx, "n0", "s", value)
}

// noTrouble checks that the copies of a namespace, and those below it, are not reported as failed.
func (s *scene) noTrouble(ctx context.Context, namespace string) {
	GinkgoHelper()
	Consistently(ctx, func(g Gomega) {
		hc := build.Hierarchy(s.own(namespace))
		err := s.Admin().Get(ctx, client.ObjectKeyFromObject(hc), hc)
		if apierrors.IsNotFound(err) {
			return // the operator had nothing to report
		}
		g.Expect(err).NotTo(HaveOccurred())
		if c := v1alpha1.FindCondition(hc.Status.Conditions, v1alpha1.ConditionPropagated); c != nil {
			g.Expect(c.Status).NotTo(Equal(metav1.ConditionFalse), c.Message)
		}
	}).WithTimeout(test.Quiet(soon)).Should(Succeed())
}

func distributedTerminates(ctx context.Context, s *scene) {
	plainNamespaces(ctx, s)
	letGo := s.hold(ctx, s.own("t0"))
	sent := s.meet(func(q gate.Request) bool { return strings.Contains(q.URL.Path, "/"+s.own("t0")+"/") }, func(n int) gate.Fault {
		if n == 1 {
			s.condemn(ctx, s.own("t0"))
		}
		return gate.Fault{}
	})
	rd := s.distribution("1")
	s.create(ctx, rd)
	for i := 1; i < 6; i++ {
		s.copied(ctx, fmt.Sprint("t", i), "given", "1")
	}
	Consistently(ctx, sent.count).WithTimeout(time.Minute).WithPolling(time.Second).
		Should(BeNumerically("<=", 1), "0 retries until it changes")
	s.says(ctx, rd, func() []metav1.Condition { return rd.Status.Conditions }, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	letGo()
	s.gone(ctx, build.Namespace(s.own("t0")))
}

func terminatesForEver(ctx context.Context, s *scene) {
	tenant(ctx, s)
	other := build.Tenant(s.own("other")).Object()
	s.create(ctx, build.SubNamespace(s.own("payments"), s.own("web")), other.DeepCopy())
	s.bound(ctx, "payments", "web")
	s.exist(ctx, build.Namespace(s.own("other")))
	letWeb, letOther := s.hold(ctx, s.own("web")), s.hold(ctx, s.own("other"))
	s.condemn(ctx, s.own("web"))
	s.condemn(ctx, s.own("other"))
	sent := s.meet(func(q gate.Request) bool {
		return !strings.HasSuffix(q.URL.Path, "/status") && !strings.Contains(q.URL.Path, "hierarchyconfigurations")
	}, func(int) gate.Fault { return gate.Fault{} })
	began := time.Now()
	s.subSays(ctx, "payments", "web", metav1.ConditionFalse, "NamespaceTerminating: ")
	s.says(ctx, other, func() []metav1.Condition { return other.Status.Conditions }, v1alpha1.ConditionNamespaceReady,
		metav1.ConditionFalse, "content in the namespace has finalizers remaining") // the namespace controller's text
	sent.fewInAMinute(ctx, began)
	letWeb()
	letOther()
	s.bound(ctx, "payments", "web")
	s.says(ctx, other, func() []metav1.Condition { return other.Status.Conditions }, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

func bothDeleted(ctx context.Context, s *scene) {
	family(ctx, s)
	letGo := s.hold(ctx, s.own("n0"))
	for _, name := range []string{"payments", "n0"} {
		s.remove(ctx, build.Namespace(s.own(name)))
	}
	Eventually(ctx, func(g Gomega) {
		subs := &v1alpha1.SubNamespaceList{}
		g.Expect(s.Admin().List(ctx, subs, client.InNamespace(s.own("payments")))).To(Succeed())
		for _, sub := range subs.Items {
			g.Expect(sub.Finalizers).To(BeEmpty(), sub.Name)
		}
	}).Should(Succeed(), "our finalizers don't keep the parent")
	child := build.Namespace(s.own("n0"))
	Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(child), child)).To(Succeed())
	letGo()
	s.gone(ctx, child)
}

func madeAgain(ctx context.Context, s *scene) {
	s.bush(ctx)
	s.create(ctx, s.source("s", "1"), build.Child(s.own("below"), s.own("n0")))
	lives := test.Many(50, 15)
	for life := range lives {
		s.create(ctx, build.Source(build.Secret(s.own("n0"), fmt.Sprint("life", life), "1"), v1alpha1.ModeUpdate))
		s.remove(ctx, build.Namespace(s.own("n0")))
		Eventually(ctx, func() error {
			return s.Admin().Create(ctx, build.Child(s.own("n0"), s.own("payments")))
		}).WithPolling(50 * time.Millisecond).Should(Succeed())
	}
	s.create(ctx, build.Source(build.Secret(s.own("n0"), "last", "1"), v1alpha1.ModeUpdate))
	s.copied(ctx, "n0", "s", "1")
	s.copied(ctx, "below", "s", "1")
	s.copied(ctx, "below", "last", "1")
	names := func(namespace string) func(Gomega) []string {
		return func(g Gomega) (names []string) {
			secrets := &corev1.SecretList{}
			g.Expect(s.Admin().List(ctx, secrets, client.InNamespace(s.own(namespace)))).To(Succeed())
			for _, secret := range secrets.Items {
				names = append(names, secret.Name)
			}
			return names
		}
	}
	for _, namespace := range []string{"n0", "below"} {
		Eventually(ctx, names(namespace)).Should(ConsistOf("s", "last"), "nothing of an earlier life")
		Consistently(ctx, names(namespace)).WithTimeout(test.Quiet(soon)).Should(ConsistOf("s", "last"))
	}
}

func customKindGoes(ctx context.Context, s *scene) {
	family(ctx, s)
	s.create(ctx, gadget(s.own("payments")), s.source("still", "1"))
	children := []string{"n0", "n1", "n2"}
	copied := map[string]*corev1.Secret{}
	for _, child := range children {
		s.exist(ctx, gadget(s.own(child)))
		copied[child] = build.Secret(s.own(child), "still", "")
		s.exist(ctx, copied[child])
	}
	played, well := make(chan struct{}), false
	go func() {
		defer GinkgoRecover()
		defer close(played)
		sources(ctx, s)
		well = true
	}()
	for isPlaying := true; isPlaying; { // at least once, so that the story meets the kind as it goes, is away, and comes back
		s.remove(ctx, build.CustomResource("example.com", "Gadget", "gadgets"))
		s.gone(ctx, build.CustomResource("example.com", "Gadget", "gadgets"))
		s.create(ctx, build.CustomResource("example.com", "Gadget", "gadgets"))
		s.create(ctx, gadget(s.own("payments")))
		for _, child := range children {
			Eventually(ctx, func() error {
				return s.Admin().Get(ctx, client.ObjectKey{Namespace: s.own(child), Name: "g"}, gadget(s.own(child)))
			}).Should(Succeed(), s.explain)
		}
		select {
		case <-played:
			isPlaying = false
		default:
		}
	}
	Expect(well).To(BeTrue(), "the story has come to its end")
	for _, child := range children {
		now := build.Secret(s.own(child), "still", "")
		s.exist(ctx, now)
		Expect([]string{string(now.UID), now.ResourceVersion}).To(Equal([]string{string(copied[child].UID), copied[child].ResourceVersion}),
			"the copies of other kinds are not written again")
	}
}
