package propagation_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a copy that somebody changes", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, unguarded) })

	secret := func(ctx context.Context) *corev1.Secret {
		s := build.Secret(f.acme, "s", "1")
		s.Data["second"] = []byte("2")
		f.create(ctx, build.Source(s, v1alpha1.ModeUpdate))
		f.copied(ctx, s, f.tree()...)
		return s
	}
	// putRight changes the copy in a by spoil, and expects the operator to restore it by one write, with an Event.
	putRight := func(ctx context.Context, source client.Object, resource string, spoil func(client.Object)) {
		GinkgoHelper()
		found := at(ctx, f, source, f.a)
		told := len(f.events(ctx, found, v1alpha1.ReasonDriftRepaired))
		l := f.ledger(ctx, resource)
		spoil(found)
		f.copied(ctx, source, f.a)
		Eventually(ctx, l.accepted).Should(Equal(counts{"update": 1}), l.String)
		Consistently(ctx, l.accepted).WithTimeout(test.Quiet(soon)).Should(Equal(counts{"update": 1}), l.String)
		Eventually(ctx, f.events).WithArguments(found, v1alpha1.ReasonDriftRepaired).Should(HaveLen(told + 1))
	}
	edit := func(ctx context.Context, edit func(*corev1.Secret)) func(client.Object) {
		return func(found client.Object) { change(ctx, f, found.(*corev1.Secret), edit) }
	}

	It("PROP-D1 with policies off, a key that is changed, added or removed, a foreign label, and changes through /status and /scale: each "+
		"is soon repaired by 1 write; Event DriftRepaired", func(ctx SpecContext) {
		s := secret(ctx)
		By("a value changed")
		putRight(ctx, s, "secrets", edit(ctx, func(s *corev1.Secret) { s.Data["key"] = []byte("x") }))
		By("a key added")
		putRight(ctx, s, "secrets", edit(ctx, func(s *corev1.Secret) { s.Data["more"] = []byte("x") }))
		By("a key removed")
		putRight(ctx, s, "secrets", edit(ctx, func(s *corev1.Secret) { delete(s.Data, "second") }))
		By("a foreign label added")
		putRight(ctx, s, "secrets", edit(ctx, func(s *corev1.Secret) { build.Labelled(s, "foreign", "x") }))
		By("a label changed through /status")
		quota := build.Source(&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.acme, Name: "q", Labels: map[string]string{"app": "x"}},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("100")}},
		}, v1alpha1.ModeUpdate)
		f.create(ctx, quota)
		f.copied(ctx, quota, f.tree()...)
		putRight(ctx, quota, "resourcequotas", func(found client.Object) {
			build.Labelled(found, "app", "y")
			found.SetResourceVersion("")
			found.SetManagedFields(nil)
			Expect(f.Admin().Status().Update(ctx, found)).To(Succeed())
		})
		By("a Deployment scaled through /scale")
		deployment := build.Source(build.Deployment(f.acme, "d", 0), v1alpha1.ModeUpdate)
		f.create(ctx, deployment)
		f.copied(ctx, deployment, f.tree()...)
		putRight(ctx, deployment, "deployments", func(found client.Object) {
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 1}}
			Expect(f.Admin().SubResource("scale").Update(ctx, found.(*appsv1.Deployment), client.WithSubResourceBody(scale))).To(Succeed())
		})
	})

	It("PROP-D2 with policies off, a deleted copy soon exists again; without inherited-from, it has that again within 10 s, with its UID; "+
		"without label and hash, it is an unchanged conflict", func(ctx SpecContext) {
		s := secret(ctx)
		f.remove(ctx, build.Secret(f.a, "s", ""))
		f.copied(ctx, s, f.a)

		found := at(ctx, f, s, f.a)
		f.label(ctx, found, v1alpha1.LabelInheritedFrom, "")
		Eventually(ctx, f.differs).WithArguments(s, f.a).Should(Succeed())
		Expect(at(ctx, f, s, f.a).UID).To(Equal(found.UID))

		change(ctx, f, found, func(s *corev1.Secret) {
			delete(s.Labels, v1alpha1.LabelInheritedFrom)
			delete(s.Annotations, v1alpha1.AnnotationSourceHash)
		})
		l := f.ledger(ctx, "secrets")
		Eventually(ctx, f.events).WithArguments(s, v1alpha1.ReasonConflict).Should(HaveLen(1))
		Consistently(ctx, func(ctx context.Context) string { return at(ctx, f, s, f.a).ResourceVersion }).
			WithTimeout(test.Quiet(soon)).Should(Equal(found.ResourceVersion), l.String)
	})

	It("of a kind in mode All, comes back without its label, too", func(ctx SpecContext) {
		r := build.Role(f.acme, "r", "get")
		f.create(ctx, r)
		f.copied(ctx, r, f.tree()...)
		found := at(ctx, f, r, f.a)
		l := f.ledger(ctx, "roles")
		f.label(ctx, found, v1alpha1.LabelInheritedFrom, "")
		f.copied(ctx, r, f.tree()...)
		l.come(ctx, counts{"update": 1})
		Expect(at(ctx, f, r, f.a).UID).To(Equal(found.UID))
	})

	It("PROP-D3 200 ConfigMaps that are created and deleted, and counted by the copy of a "+
		"ResourceQuota, cause no write of ResourceQuotas", func(ctx SpecContext) {
		quota := build.Source(&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.acme, Name: "q"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("1k")}},
		}, v1alpha1.ModeUpdate)
		f.create(ctx, quota)
		f.copied(ctx, quota, f.tree()...)
		l := f.ledger(ctx, "resourcequotas")
		before := at(ctx, f, quota, f.a).ResourceVersion
		for i := range 200 {
			f.create(ctx, build.ConfigMap(f.a, fmt.Sprint("m", i), "x"))
		}
		Eventually(ctx, func(ctx context.Context) string { return at(ctx, f, quota, f.a).ResourceVersion }).ShouldNot(Equal(before))
		Expect(f.Admin().DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(f.a))).To(Succeed())
		l.rests(ctx, counts{})
	})

	It("PROP-D5 a copy changed each second gets at most 10 writes, Event DriftLoop, then 1 in 10 min (`make test-long`; 20 s in `make "+
		"test`); others are not delayed", func(ctx SpecContext) {
		s, other := secret(ctx), build.Source(build.Secret(f.acme, "other", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, other)
		f.copied(ctx, other, f.tree()...)
		l := f.ledger(ctx, "secrets")
		looping, stop := context.WithCancel(ctx)
		DeferCleanup(stop)
		go func() {
			again := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/again":"x"}}}`))
			for tick := time.Tick(time.Second); looping.Err() == nil; <-tick {
				_ = f.Admin().Patch(looping, build.Secret(f.a, "s", ""), again)
			}
		}()
		Eventually(ctx, f.events).WithArguments(build.Secret(f.a, "s", ""), v1alpha1.ReasonDriftLoop).Should(HaveLen(1), explain(f.World))
		told := l.writes(ctx)["update"]
		Expect(told).To(BeNumerically("<=", 10))
		change(ctx, f, other, func(s *corev1.Secret) { s.Data["key"] = []byte("2") })
		f.copied(ctx, other, f.tree()...)
		change(ctx, f, s, func(s *corev1.Secret) { s.Data["key"] = []byte("3") })
		f.copied(ctx, s, f.a1, f.b)
		const others = 5 // updates of the other copies of both sources
		const ofLoop = 2 // one write of the copy in the loop, and one that met a write of the other client
		most, updates := told+others+ofLoop, func(ctx context.Context) int { return l.writes(ctx)["update"] }
		Consistently(ctx, updates).WithTimeout(max(20*time.Second, test.Quiet(2*time.Minute))).WithPolling(time.Second).
			Should(BeNumerically("<=", most), l.String)
		if test.IsLong() {
			most = updates(ctx) + 1
			Consistently(ctx, updates).WithTimeout(9*time.Minute).WithPolling(time.Second).Should(BeNumerically("<=", most), l.String)
		}
	}, SpecTimeout(20*time.Minute))

	It("PROP-D6 with policies off, a finalizer, an ownerReference and an excluded annotation that a controller adds to a copy cause no "+
		"write; they stay when the source changes", func(ctx SpecContext) {
		s := secret(ctx)
		owner := build.ConfigMap(f.a, "owner", "1")
		f.create(ctx, owner)
		l := f.ledger(ctx, "secrets")
		found := at(ctx, f, s, f.a)
		change(ctx, f, found, func(s *corev1.Secret) {
			s.Finalizers = []string{"example.com/held"}
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
			build.Annotated(s, "argocd.argoproj.io/note", "kept")
		})
		l.rests(ctx, counts{})
		change(ctx, f, s, func(s *corev1.Secret) { s.Data["key"] = []byte("3") })
		l.come(ctx, counts{"update": 3})
		now := at(ctx, f, s, f.a)
		Expect(now.Data).To(HaveKeyWithValue("key", []byte("3")))
		Expect(now.Finalizers).To(Equal(found.Finalizers))
		Expect(now.OwnerReferences).To(Equal(found.OwnerReferences))
		Expect(now.Annotations).To(HaveKeyWithValue("argocd.argoproj.io/note", "kept"))
		change(ctx, f, found, func(s *corev1.Secret) { s.Finalizers = nil })
	})

	It("PROP-D7 copies of a Service, NetworkPolicy, LimitRange and a custom resource with CRD defaults get 1 write, and none in the next "+
		"60 s", func(ctx SpecContext) {
		policy := &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.acme, Name: "s"},
			Spec:       networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}},
		}
		limits := &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.acme, Name: "s"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")},
			}}},
		}
		resources := map[string]client.Object{
			"services": build.Service(f.acme, "s", 80), "networkpolicies": policy, "limitranges": limits,
			"widgets": widget("Widget", f.acme, "s", "blue"),
		}
		ledgers := map[string]*ledger{}
		for resource, source := range resources {
			ledgers[resource] = f.ledger(ctx, resource)
			f.create(ctx, build.Source(source, v1alpha1.ModeUpdate))
		}
		for _, l := range ledgers {
			Eventually(ctx, l.writes).Should(Equal(counts{"create": 3}), l.String)
		}
		Consistently(ctx, func(g Gomega, ctx context.Context) {
			for _, l := range ledgers {
				g.Expect(l.writes(ctx)).To(Equal(counts{"create": 3}), l.String)
			}
		}).WithTimeout(test.Quiet(time.Minute)).Should(Succeed())
		f.copied(ctx, policy, f.tree()...)
		f.copied(ctx, limits, f.tree()...)
		f.copied(ctx, resources["widgets"], f.tree()...)
	})
})
