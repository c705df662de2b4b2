package propagation_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// beRefused matches a 403 with that text.
func beRefused(text string) gomegatypes.GomegaMatcher {
	return And(MatchError(apierrors.IsForbidden, "is a 403"), MatchError(ContainSubstring(text)))
}

var _ = Describe("a copy, with the policies in force", func() {
	It("PROP-A1 user, sudoer and cluster admin get 403 when they edit, label or delete a copy (\"change the source instead\"); also for a "+
		"new object with inherited-from (\"leave them out\")", func(ctx SpecContext) {
		f := grow(ctx, world)
		tenant := build.Tenant(f.prefix + "tenant").Users("alice").Sudoers("bob").Object()
		f.create(ctx, tenant)
		web := f.prefix + "web"
		Eventually(ctx, func(ctx context.Context) error { return f.Admin().Create(ctx, build.SubNamespace(tenant.Name, web)) }).
			Should(Succeed(), "the tenant's namespace is made")
		Eventually(ctx, func(ctx context.Context) error {
			return f.Admin().Get(ctx, client.ObjectKey{Name: web}, &corev1.Namespace{})
		}).Should(Succeed(), "the sub-namespace is made")
		s := build.Source(build.Secret(tenant.Name, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, web)
		before := at(ctx, f, s, web)

		refused := beRefused("s is a copy of " + tenant.Name + "/s; change the source instead")
		for who, c := range map[string]client.Client{"alice": f.As("alice"), "bob": f.Sudo("bob", tenant.Name), "a cluster admin": f.Admin()} {
			Eventually(ctx, func(ctx context.Context) error { return c.List(ctx, &corev1.SecretList{}, client.InNamespace(web)) }).
				Should(Succeed(), "the right of %s arrives", who)
			edited := before.DeepCopy()
			edited.Data["key"] = []byte("x")
			Expect(c.Update(ctx, edited)).To(refused, "%s edits it", who)
			Expect(c.Update(ctx, build.Labelled(before.DeepCopy(), "foreign", "x"))).To(refused, "%s labels it", who)
			stripped := before.DeepCopy()
			delete(stripped.Labels, v1alpha1.LabelInheritedFrom)
			Expect(c.Update(ctx, stripped)).To(refused, "%s takes the mark off", who)
			Expect(c.Delete(ctx, before.DeepCopy())).To(refused, "%s deletes it", who)
			forged := build.Secret(tenant.Name, "forged", "1", v1alpha1.LabelInheritedFrom, f.acme)
			Expect(c.Create(ctx, forged)).To(beRefused("denied request: keys of tenancy.warren.dev belong to the operator: leave them out"),
				"%s makes one", who)
		}
		Expect(at(ctx, f, s, web)).To(Equal(before))
		f.staysAbsent(ctx, build.Secret("", "forged", ""), tenant.Name)
	})

	It("PROP-A3 through /status of a ResourceQuota's copy, a cluster admin may write the status, and no label, annotation or finalizer; "+
		"the operator writes nothing", func(ctx SpecContext) {
		f := grow(ctx, world)
		quota := build.Source(&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.acme, Name: "q"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": resource.MustParse("100")}},
		}, v1alpha1.ModeUpdate)
		f.create(ctx, quota)
		f.copied(ctx, quota, f.tree()...)
		l := f.ledger(ctx, "resourcequotas")
		through := func(edit func(*corev1.ResourceQuota)) error {
			var err error
			Eventually(ctx, func(ctx context.Context) bool { // the quota controller writes the status, too
				found := at(ctx, f, quota, f.a)
				edit(found)
				err = f.Admin().Status().Update(ctx, found)
				return apierrors.IsConflict(err)
			}).Should(BeFalse())
			return err
		}
		Expect(through(func(q *corev1.ResourceQuota) {
			q.Status.Used = corev1.ResourceList{"count/secrets": resource.MustParse("7")}
		})).To(Succeed())
		refused := beRefused("q is a copy of " + f.acme + "/q; change the source instead")
		Expect(through(func(q *corev1.ResourceQuota) { build.Labelled(q, "foreign", "x") })).To(refused)
		Expect(through(func(q *corev1.ResourceQuota) { build.Annotated(q, "foreign", "x") })).To(refused)
		Expect(through(func(q *corev1.ResourceQuota) { q.Finalizers = append(q.Finalizers, "example.com/held") })).To(refused)
		l.rests(ctx, counts{})
		f.copied(ctx, quota, f.a)
	})
})
