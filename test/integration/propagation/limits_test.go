package propagation_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("limits of a tree", func() {
	It("PROP-L7 a limit holds back the youngest source: LimitExceeded on the root, a Warning, metric 3; a deletion or a higher limit "+
		"releases it; a lower one deletes nothing", func(ctx SpecContext) {
		f := grow(ctx, world)
		tenant := build.Tenant(f.prefix + "limited").Object()
		limit := func(copies int32) { // of the tenant
			change(ctx, f, tenant, func(t *v1alpha1.LNamespace) { t.Spec.Limits = &v1alpha1.Limits{Copies: &copies} })
		}
		f.create(ctx, tenant)
		limit(6)
		root := tenant.Name
		Eventually(ctx, func(ctx context.Context) error {
			return f.Admin().Get(ctx, client.ObjectKey{Name: root}, &corev1.Namespace{})
		}).Should(Succeed())
		below := []string{f.prefix + "l1", f.prefix + "l2", f.prefix + "l3"}
		for _, name := range below {
			f.create(ctx, build.Child(name, root))
		}
		made := func(name string) *corev1.Secret {
			s := build.Source(build.Secret(root, name, "1"), v1alpha1.ModeUpdate)
			f.create(ctx, s)
			return s
		}
		limited := func(ctx context.Context) (float64, error) {
			m, err := f.Operator.Metrics(ctx)
			return m.Value("warren_propagation_limited", map[string]string{"kind": "Secret"}), err
		}

		By("the youngest of three waits")
		first := made("z-first")
		f.copied(ctx, first, below...)
		ageBySecond(ctx, first)
		second := made("y-second")
		f.copied(ctx, second, below...)
		ageBySecond(ctx, second)
		third := made("x-third")
		f.says(ctx, map[string]string{root: "LimitExceeded: Secret \"x-third\" from \"" + root + "\": 3 copies of it are not written"})
		Eventually(ctx, f.events).WithArguments(third, v1alpha1.ReasonLimitExceeded).Should(HaveLen(1))
		Eventually(ctx, limited).Should(BeEquivalentTo(3))
		f.staysAbsent(ctx, third, below...)

		By("it comes when an older one goes")
		f.remove(ctx, first)
		f.copied(ctx, third, below...)
		f.says(ctx, map[string]string{root: "InSync"})
		Eventually(ctx, limited).Should(BeZero())

		By("a higher limit lets another come, a lower one takes nothing")
		fourth := made("w-fourth")
		f.says(ctx, map[string]string{root: "LimitExceeded: Secret \"w-fourth\""})
		limit(9)
		f.copied(ctx, fourth, below...)
		f.says(ctx, map[string]string{root: "InSync"})
		limit(1)
		change(ctx, f, second, func(s *corev1.Secret) { s.Data["key"] = []byte("2") })
		f.copied(ctx, second, below...)
		f.copied(ctx, third, below...)
		f.copied(ctx, fourth, below...)
	})
})

// ageBySecond waits until what is made next has a later creationTimestamp, which counts in seconds.
func ageBySecond(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(ctx, func() time.Duration { return time.Since(object.GetCreationTimestamp().Time) }).
		Should(BeNumerically(">", 1100*time.Millisecond))
}
