package billing_test

import (
	"database/sql"
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/test"
)

var _ = Describe("the exporter's Lease", Ordered, func() {
	var first, second *exporter
	key := client.ObjectKey{Namespace: "warren-system", Name: programs.LeaseName}
	AfterAll(func() {
		first.end()
		second.end()
	})

	start := func(ctx SpecContext, name string) (e *exporter, holds func() []string) {
		GinkgoHelper()
		file := filepath.Join(world.Dir, name, "billing.db")
		e = startExporter(ctx, name, configuration(fmt.Sprintf("sqlite: {path: %q}", file), "sqlite"))
		db, err := billing.OpenSQLite(file)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup((*sql.DB).Close, db)
		return e, periods(ctx, db, "leased")
	}
	holder := func(ctx SpecContext) func() string {
		return func() string {
			lease := &coordinationv1.Lease{}
			if err := world.Admin().Get(ctx, key, lease); err != nil {
				return err.Error()
			}
			return ptr.Deref(lease.Spec.HolderIdentity, "")
		}
	}
	ended := func(ctx SpecContext, e *exporter, says string) {
		GinkgoHelper()
		Eventually(e.Done()).WithContext(ctx).Should(BeClosed())
		Expect(e.ExitCode()).To(Equal(1))
		Expect(e.LogTail(40)).To(ContainSubstring(says))
	}

	It("BILL-76 of two exporters only the leader writes; when it ends, the other becomes the leader", func(ctx SpecContext) {
		tenant(ctx, "leased", "1")
		var firstHolds, secondHolds func() []string
		first, firstHolds = start(ctx, "lease-first")
		Eventually(firstHolds).WithContext(ctx).Should(Equal([]string{"leased 1"}))
		second, secondHolds = start(ctx, "lease-second")
		Consistently(secondHolds).WithContext(ctx).WithTimeout(test.Quiet(soon)).ShouldNot(ContainElement("leased 1"))
		Expect(first.Stop()).To(Succeed())
		Eventually(secondHolds).WithContext(ctx).Should(Equal([]string{"leased 1"}))
	})

	It("BILL-76 the leader ends with an error if another process takes its Lease; "+
		"a Lease that nobody renews is taken after its expiry", func(ctx SpecContext) {
		lease := &coordinationv1.Lease{}
		Eventually(func() error {
			if err := world.Admin().Get(ctx, key, lease); err != nil {
				return err
			}
			lease.Spec.HolderIdentity, lease.Spec.RenewTime = new("another"), new(metav1.NowMicro())
			return world.Admin().Update(ctx, lease)
		}).WithContext(ctx).Should(Succeed())
		ended(ctx, second, "another replica has taken the Lease")
		var holds func() []string
		first, holds = start(ctx, "lease-third")
		Eventually(holds).WithContext(ctx).Should(Equal([]string{"leased 1"}))
		Expect(holder(ctx)()).NotTo(Equal("another"))
	})

	It("BILL-76 the leader creates its deleted Lease again; without its right to the Lease it ends with an error", func(ctx SpecContext) {
		self := holder(ctx)()
		lease := &coordinationv1.Lease{}
		lease.Namespace, lease.Name = key.Namespace, key.Name
		Expect(world.Admin().Delete(ctx, lease)).To(Succeed())
		Eventually(holder(ctx)).WithContext(ctx).Should(Equal(self))
		may := &rbacv1.RoleBinding{}
		Expect(world.Admin().Get(ctx, client.ObjectKey{Namespace: "warren-system", Name: "warren-billing-exporter"}, may)).To(Succeed())
		Expect(world.Admin().Delete(ctx, may.DeepCopy())).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			may.ResourceVersion, may.UID = "", ""
			Expect(world.Admin().Create(ctx, may)).To(Succeed())
		})
		ended(ctx, first, "leader election lost")
	})
})
