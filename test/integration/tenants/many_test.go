package tenants_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

var _ = Describe("many tenants", Ordered, SpecPriority(1), func() {
	const half = 100
	var w *devcluster.World

	BeforeAll(func(ctx SpecContext) {
		w = ownWorld(ctx, devcluster.Options{}, "x01")
	})

	// settled makes that many tenants at once, all with the same sudoer. It waits until all are Ready, and until each has the date of its
	// first grant of sudo, which a later pass writes.
	settled := func(ctx SpecContext, f *fixture, from int) {
		GinkgoHelper()
		for n := range half {
			f.create(ctx, build.Tenant(fmt.Sprintf("x01-t%03d", from+n)).Users(f.own("alice")).Sudoers(f.own("bob")).Object())
		}
		Eventually(func() ([]string, error) {
			list := &v1alpha1.LNamespaceList{}
			err := w.Admin().List(ctx, list)
			var waiting []string
			for _, lns := range list.Items {
				if c := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != "True" ||
					lns.Status.SudoGrantedAt == nil {
					waiting = append(waiting, lns.Name)
				}
			}
			return waiting, err
		}).WithContext(ctx).WithPolling(time.Second / 2).Should(BeEmpty())
	}

	It("ACC-X01 100 LNamespaces created at once with sudoer bob are all Ready; the self pair has 100 references, and no line of the log "+
		"has level error", func(ctx SpecContext) {
		f := of(w, "x01")
		settled(ctx, f, 0)
		Eventually(f.references(ctx, f.own("bob"))).WithContext(ctx).Should(HaveLen(half))
		for line := range strings.Lines(w.Operator.Log()) {
			Expect(line).NotTo(MatchRegexp(`"level":"error"|\tERROR\t`))
		}
		allowed(ctx, f.sudo("bob", "t042"), secretsIn(f.own("t042")))
	}, SpecTimeout(8*time.Minute))

	It("ACC-R11 with 200 tenants, a restart of the operator writes nothing", func(ctx SpecContext) {
		f := of(w, "x01")
		settled(ctx, f, half)
		Eventually(f.references(ctx, f.own("bob"))).WithContext(ctx).Should(HaveLen(2 * half))
		var mark audit.Position
		Eventually(func(g Gomega) {
			var err error
			mark, err = w.Mark(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Consistently(func() (any, error) { return w.Writes(ctx, mark) }).WithContext(ctx).WithTimeout(3 * time.Second).Should(BeEmpty())
		}).WithContext(ctx).Should(Succeed(), "at rest, nothing")
		Expect(w.Operator.Restart(ctx)).To(Succeed())
		Consistently(func() (any, error) { return w.Writes(ctx, mark) }).WithContext(ctx).
			WithTimeout(test.Quiet(10 * time.Second)).WithPolling(time.Second / 4).Should(BeEmpty())
	}, SpecTimeout(8*time.Minute))
})
