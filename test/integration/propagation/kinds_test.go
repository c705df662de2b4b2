package propagation_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

var _ = Describe("a copy of a kind with a will of its own", func() {
	var f *family
	BeforeEach(func(ctx SpecContext) { f = grow(ctx, world) })

	It("PROP-I3 when an immutable ConfigMap, a Secret's type or a RoleBinding's roleRef is made anew with another value, each copy is "+
		"deleted and created once; it equals the source", func(ctx SpecContext) {
		yes := true
		configMap := func(value string) *corev1.ConfigMap {
			m := build.Source(build.ConfigMap(f.acme, "s", value), v1alpha1.ModeUpdate)
			m.Immutable = &yes
			return m
		}
		secret := func(kind corev1.SecretType) *corev1.Secret {
			s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
			s.Type = kind
			return s
		}
		role := func(name string) *rbacv1.RoleBinding {
			return build.Source(binding(f.acme, "s", name, "eve"), v1alpha1.ModeUpdate)
		}
		for _, step := range []struct {
			resource string
			old, now client.Object
		}{
			{"configmaps", configMap("1"), configMap("2")},
			{"secrets", secret("example.com/one"), secret("example.com/two")},
			{"rolebindings", role("view"), role("edit")},
		} {
			f.create(ctx, step.old)
			f.copied(ctx, step.old, f.tree()...)
			l := f.ledger(ctx, step.resource)
			f.remove(ctx, step.old)
			f.create(ctx, step.now)
			f.copied(ctx, step.now, f.tree()...)
			Eventually(ctx, l.accepted).Should(Equal(counts{"delete": 3, "create": 3}), l.String)
		}
	})

	It("PROP-I4 each copy of a Service has, and keeps, its own clusterIP and nodePort when the target port changes; a headless Service "+
		"stays headless", func(ctx SpecContext) {
		s := build.Source(build.Service(f.acme, "s", 80), v1alpha1.ModeUpdate)
		s.Spec.Type = corev1.ServiceTypeNodePort
		headless := build.Source(build.Service(f.acme, "headless", 80), v1alpha1.ModeUpdate)
		headless.Spec.ClusterIP = corev1.ClusterIPNone
		f.create(ctx, s, headless)
		own := map[string]corev1.ServiceSpec{}
		Eventually(ctx, f.standing).WithArguments(s, f.a, f.a1, f.b).Should(HaveLen(3))
		for _, namespace := range f.tree() {
			own[namespace] = at(ctx, f, s, namespace).Spec
			Expect(own[namespace].ClusterIP).NotTo(BeElementOf("", corev1.ClusterIPNone, s.Spec.ClusterIP))
			Expect(own[namespace].Ports[0].NodePort).NotTo(BeElementOf(int32(0), s.Spec.Ports[0].NodePort))
		}
		change(ctx, f, s, func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(8080) })
		for _, namespace := range f.tree() {
			want := own[namespace]
			want.Ports[0].TargetPort = intstr.FromInt32(8080)
			Eventually(ctx, func(ctx context.Context) corev1.ServiceSpec { return at(ctx, f, s, namespace).Spec }).Should(Equal(want))
		}
		f.copied(ctx, headless, f.tree()...)
	})

	It("PROP-I5 if headless acme/s follows a/s, whose copy in a1 has a ClusterIP, a1 reports Rejected (\"may not change once set\"); its "+
		"copy stays, and b gets acme's", func(ctx SpecContext) {
		lower := build.Source(build.Service(f.a, "s", 80), v1alpha1.ModeUpdate)
		f.create(ctx, lower)
		Eventually(ctx, f.standing).WithArguments(lower, f.a1).Should(HaveLen(1))
		before := at(ctx, f, lower, f.a1)
		upper := build.Source(build.Service(f.acme, "s", 80), v1alpha1.ModeUpdate)
		upper.Spec.ClusterIP = corev1.ClusterIPNone
		f.create(ctx, upper)
		f.copied(ctx, upper, f.b)
		Eventually(ctx, f.events).WithArguments(upper, v1alpha1.ReasonCopyRejected).
			Should(ContainElement(ContainSubstring("may not change once set")))
		f.says(ctx, map[string]string{f.a1: fmt.Sprintf("Rejected: Service %q from %q", "s", f.acme)})
		Expect(at(ctx, f, lower, f.a1)).To(Equal(before))
	})

	It("PROP-I6 ServiceAccounts that a source RoleBinding names, with or without namespace, have namespace acme in the copies; "+
		"ServiceAccount default of a gains no right", func(ctx SpecContext) {
		b := build.Source(binding(f.acme, "s", "view"), v1alpha1.ModeUpdate)
		b.Subjects = []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Namespace: f.acme, Name: "default"}, {Kind: rbacv1.ServiceAccountKind, Name: "default"},
		}
		f.create(ctx, b)
		Eventually(ctx, f.standing).WithArguments(b, f.a, f.a1, f.b).Should(HaveLen(3))
		for _, namespace := range f.tree() {
			Expect(at(ctx, f, b, namespace).Subjects).To(HaveEach(HaveField("Namespace", f.acme)))
		}
		may := func(ctx context.Context, account string) (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + account + ":default",
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: f.a, Verb: "list", Resource: "configmaps"},
			}}
			err := f.Admin().Create(ctx, review)
			return review.Status.Allowed, err
		}
		Eventually(ctx, may).WithArguments(f.acme).Should(BeTrue())
		Expect(may(ctx, f.a)).To(BeFalse())
	})

	It("PROP-I7 copies of a ServiceAccount lack its secrets, and keep its imagePullSecrets", func(ctx SpecContext) {
		account := build.Source(&corev1.ServiceAccount{
			ObjectMeta:       metav1.ObjectMeta{Namespace: f.acme, Name: "s"},
			Secrets:          []corev1.ObjectReference{{Name: "token"}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		}, v1alpha1.ModeUpdate)
		f.create(ctx, account)
		Eventually(ctx, f.standing).WithArguments(account, f.a, f.a1, f.b).Should(HaveLen(3))
		for _, namespace := range f.tree() {
			found := at(ctx, f, account, namespace)
			Expect(found.Secrets).To(BeEmpty())
			Expect(found.ImagePullSecrets).To(Equal(account.ImagePullSecrets))
		}
	})

	It("PROP-I9 while b is terminating, a changed source updates a and a1, and sends no request to b and sets no condition; once b is "+
		"created again, it gets the copies", func(ctx SpecContext) {
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		held := build.ConfigMap(f.b, "held", "1")
		held.Finalizers = []string{"example.com/held"}
		f.create(ctx, s, held)
		f.copied(ctx, s, f.tree()...)
		f.remove(ctx, build.Namespace(f.b))
		Eventually(ctx, f.standing).WithArguments(s, f.b).Should(BeEmpty(), "the namespace controller empties b")
		l := f.ledger(ctx, "secrets")
		change(ctx, f, s, func(s *corev1.Secret) { s.Data["key"] = []byte("2") })
		f.copied(ctx, s, f.a, f.a1)
		l.come(ctx, counts{"update": 2})
		toB := func(r audit.Request) bool { return r.Namespace == f.b }
		Expect(l.count(ctx, toB)).To(BeEmpty())
		Expect(f.events(ctx, s, "")).To(BeEmpty())
		Expect(f.reports(ctx, f.b)).To(BeEmpty(), "no condition")
		change(ctx, f, held, func(m *corev1.ConfigMap) { m.Finalizers = nil })
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(f.Admin().Get(ctx, client.ObjectKey{Name: f.b}, &corev1.Namespace{}))
		}).Should(BeTrue(), "the namespace controller ends b")
		f.create(ctx, build.Child(f.b, f.acme))
		f.copied(ctx, s, f.b)
	})
})
