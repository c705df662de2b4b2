package tenants_test

import (
	"context"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
)

var _ = Describe("the date of a bill", func() {
	It("BILL-30 while the operator is down, a manager dates managedFields to 2001 or 2099: "+
		"status.billing.since has neither year, and is never before the one it replaces", func(ctx SpecContext) {
		w := ownWorld(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: sudoMode("Legacy").text() + billed}}, "b30")
		f := of(w, "b30")
		tenant := f.own("payments")
		f.settle(ctx, f.payments())
		Eventually(func() *v1alpha1.BillingStatus { return f.get(ctx, tenant).Status.Billing }).WithContext(ctx).
			Should(Equal(&v1alpha1.BillingStatus{Since: f.get(ctx, tenant).CreationTimestamp}))
		for _, year := range []int{2001, 2099} {
			last := f.get(ctx, tenant).Status.Billing.Since
			_, err := w.Operator.Stop()
			Expect(err).NotTo(HaveOccurred())
			center := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Format("cc-2006")
			f.set(ctx, f.Admin(), tenant, map[string]any{"billing": map[string]any{"costCenter": center}})
			f.redate(ctx, tenant, year)
			Expect(w.Operator.Start(ctx)).To(Succeed())
			Eventually(func() *v1alpha1.BillingStatus { return f.get(ctx, tenant).Status.Billing }).WithContext(ctx).
				Should(HaveField("CostCenter", center))
			since := f.get(ctx, tenant).Status.Billing.Since.Time
			Expect(since).To(And(BeTemporally(">=", last.Time), BeTemporally("<", time.Now().Add(time.Hour))), "managedFields say %d", year)
		}
	})
})

// redate has mia, a manager, write another year into every entry of managedFields.
func (f *fixture) redate(ctx context.Context, tenant string, year int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		lns := &v1alpha1.LNamespace{}
		g.Expect(f.as("mia").Get(ctx, client.ObjectKey{Name: tenant}, lns)).To(Succeed())
		// otherwise only times would change, and the API server does not write such a change
		metav1.SetMetaDataAnnotation(&lns.ObjectMeta, "example.com/year", strconv.Itoa(year))
		at := metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		for i := range lns.ManagedFields {
			lns.ManagedFields[i].Time = &at
		}
		g.Expect(f.as("mia").Update(ctx, lns)).To(Succeed())
		g.Expect(lns.ManagedFields).To(ContainElement(HaveField("Time", HaveField("Time", BeTemporally("==", at.Time)))),
			"the API server keeps what mia wrote")
	}).WithContext(ctx).Should(Succeed())
}
