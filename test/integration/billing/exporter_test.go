package billing_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

func opened(dialect billing.Dialect, db *sql.DB) *billing.Store {
	GinkgoHelper()
	store, err := billing.NewStore(db, dialect, billing.Options{Table: "tenant_billing", Cluster: clusterID, MaxRows: 500, MaxBytes: 1 << 20})
	Expect(err).NotTo(HaveOccurred())
	return store
}

var _ = Describe("the exporter", Ordered, func() {
	var e *exporter
	var store *billing.Store
	var db *sql.DB
	var file string
	AfterAll(func() {
		e.end()
		if db != nil {
			Expect(db.Close()).To(Succeed())
		}
	})

	It("BILL-35 while no exporter runs, a tenant has BillingExported=False/NotRunning; "+
		"when one starts, it has True/Exported", func(ctx SpecContext) {
		tenant(ctx, "pay", "4711")
		Eventually(exported(ctx, "pay")).WithContext(ctx).Should(Equal("False/NotRunning"))
		file = filepath.Join(world.Dir, "ledger", "billing.db")
		e = startExporter(ctx, "exporter", configuration(fmt.Sprintf("sqlite: {path: %q}", file), "sqlite"))
		Eventually(exported(ctx, "pay")).WithContext(ctx).Should(Equal("True/Exported"))
		var err error
		db, err = billing.OpenSQLite(file)
		Expect(err).NotTo(HaveOccurred())
		store = opened(billing.SQLite, db)
		Eventually(periods(ctx, db, "pay")).WithContext(ctx).Should(Equal([]string{"pay 4711"}))
	})

	It("BILL-36 a cost center changes five times without a pause: six periods; "+
		"BILL-54 the condition gets the last generation as observedGeneration", func(ctx SpecContext) {
		want := []string{"pay 4711"}
		for i := range 5 {
			costCenter := fmt.Sprint(5000 + i)
			Expect(world.Admin().Patch(ctx, build.Tenant("pay").Object(), paying(costCenter))).To(Succeed())
			want = append(want, "pay "+costCenter)
		}
		Eventually(periods(ctx, db, "pay")).WithContext(ctx).Should(Equal(want))
		Eventually(func(g Gomega) {
			lns := &v1alpha1.LNamespace{}
			g.Expect(world.Admin().Get(ctx, client.ObjectKey{Name: "pay"}, lns)).To(Succeed())
			g.Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionBillingExported)).
				To(HaveField("ObservedGeneration", lns.Generation))
		}).WithContext(ctx).Should(Succeed())
	})

	It("BILL-37 a sub-namespace with a child moves to another tenant: the old periods end where the new ones begin; "+
		"a deleted child's period ends", func(ctx SpecContext) {
		tenant(ctx, "shop", "0815")
		Expect(world.Admin().Create(ctx, build.Child("till", "pay"))).To(Succeed())
		Expect(world.Admin().Create(ctx, build.Child("till-db", "till"))).To(Succeed())
		Eventually(periods(ctx, db, "till-db")).WithContext(ctx).Should(Equal([]string{"pay 5004"}))
		Eventually(periods(ctx, db, "shop")).WithContext(ctx).Should(Equal([]string{"shop 0815"}))
		Expect(world.Admin().Patch(ctx, build.Namespace("till"), client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:"shop"}}}`, v1alpha1.LabelParent)))).To(Succeed())
		for _, name := range []string{"till", "till-db"} {
			Eventually(periods(ctx, db, name)).WithContext(ctx).Should(Equal([]string{"pay 5004", "shop 0815"}))
		}
		Expect(world.Admin().Delete(ctx, build.Namespace("till-db"))).To(Succeed())
		Eventually(periods(ctx, db, "till-db")).WithContext(ctx).Should(Equal([]string{"pay 5004", "shop 0815", "ended"}))
	})

	It("BILL-33 while nothing changes in the cluster, the watermark advances, and no row is appended", func(ctx SpecContext) {
		watermark := func() time.Time {
			runs, err := store.Runs(ctx)
			if err != nil || len(runs) == 0 {
				return time.Time{}
			}
			return runs[0].CompleteUntil
		}
		Eventually(watermark).WithContext(ctx).ShouldNot(BeZero())
		rows := func() int { return countRows(ctx, file) }
		before, since := rows(), watermark()
		Eventually(watermark).WithContext(ctx).Should(BeTemporally(">", since))
		Consistently(rows).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Equal(before))
	})

	It("BILL-38 after SIGKILL, the next exporter finds a changed cost center, a created and a deleted namespace, "+
		"and appends their events", func(ctx SpecContext) {
		Expect(e.Kill()).To(Succeed())
		Expect(world.Admin().Patch(ctx, build.Tenant("pay").Object(), paying("6000"))).To(Succeed())
		Expect(world.Admin().Create(ctx, build.Child("late", "pay"))).To(Succeed())
		Expect(world.Admin().Delete(ctx, build.Namespace("till"))).To(Succeed())
		Eventually(func() error { return world.Admin().Get(ctx, client.ObjectKey{Name: "till"}, &corev1.Namespace{}) }).WithContext(ctx).
			Should(Satisfy(apierrors.IsNotFound))
		e.again(ctx)
		Eventually(periods(ctx, db, "pay")).WithContext(ctx).Should(HaveExactElements(append(
			slices.Repeat([]any{Not(BeEmpty())}, 6), "pay 6000")...))
		Eventually(periods(ctx, db, "late")).WithContext(ctx).Should(Equal([]string{"pay 6000"}))
		Eventually(periods(ctx, db, "till")).WithContext(ctx).Should(Equal([]string{"pay 5004", "shop 0815", "ended"}))
		Eventually(exported(ctx, "pay")).WithContext(ctx).Should(Equal("True/Exported"))
	})

	It("BILL-48 kubectl warren billing --config beside the ledger: sql prints the rows, status the runs", func(ctx SpecContext) {
		ask := func(args ...string) string {
			GinkgoHelper()
			out, problems, code := world.Kubectl(ctx, "admin", append([]string{"warren", "billing"}, append(args, "--config="+e.config)...)...)
			Expect(code).To(Equal(0), problems)
			return out
		}
		Expect(ask("sql", "SELECT namespace, cost_center FROM tenant_billing_periods WHERE valid_to IS NULL", "-o=csv")).
			To(ContainSubstring("pay,6000\n"))
		Expect(ask("status", "-o=csv")).To(HavePrefix("exporter,version,started_at,complete_until,run_id\n"))
	})

	It("BILL-39 the exporter's token can't create objects or Events in a tenant, list Secrets, "+
		"or write an LNamespace but for condition BillingExported", func(ctx SpecContext) {
		c := world.As(account)
		event := &corev1.Event{InvolvedObject: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LNamespace",
			Name: "pay", Namespace: "pay"},
			Source: corev1.EventSource{Component: "warren-billing-exporter"}}
		event.Namespace, event.Name = "pay", "mine"
		for _, object := range []client.Object{build.Namespace("mine"), build.ConfigMap("default", "mine", "x"),
			build.Secret("default", "mine", "x"), event} {
			Expect(c.Create(ctx, object)).To(Satisfy(apierrors.IsForbidden), "%T", object)
		}
		lns := build.Tenant("pay").Object()
		Expect(c.Patch(ctx, lns, paying("1"))).To(Satisfy(apierrors.IsForbidden))
		status := func(text string) error {
			return c.Status().Patch(ctx, build.Tenant("pay").Object(), client.RawPatch(types.MergePatchType, []byte(`{"status":`+text+`}`)))
		}
		for _, text := range []string{`{"namespace":"kube-system"}`, `{"billing":{"costCenter":"1","since":"2026-01-01T00:00:00Z"}}`,
			`{"sudo":null}`, `{"conditions":[]}`} {
			Expect(status(text)).To(MatchError(ContainSubstring("the billing exporter may write condition BillingExported alone")), text)
		}
		Expect(c.List(ctx, &corev1.SecretList{})).To(Satisfy(apierrors.IsForbidden))
	})

	It("FLT-F37 while another process locks the ledger's file, tenants are created and changed as usual; afterwards BillingExported is "+
		"True, and every change is in the ledger", func(ctx SpecContext) {
		before := periods(ctx, db, "pay")()
		holder, err := billing.OpenSQLite(file)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(holder.Close)
		holder.SetMaxOpenConns(1)
		_, err = holder.ExecContext(ctx, "BEGIN IMMEDIATE")
		Expect(err).NotTo(HaveOccurred())
		Expect(world.Admin().Patch(ctx, build.Tenant("pay").Object(), paying("6500"))).To(Succeed())
		tenant(ctx, "meanwhile", "1")
		Eventually(func() error { return world.Admin().Get(ctx, client.ObjectKey{Name: "meanwhile"}, &corev1.Namespace{}) }).
			WithContext(ctx).Should(Succeed())
		Eventually(exported(ctx, "pay")).WithContext(ctx).Should(HavePrefix("False/"))
		_, err = holder.ExecContext(ctx, "ROLLBACK")
		Expect(err).NotTo(HaveOccurred())
		Eventually(periods(ctx, db, "pay")).WithContext(ctx).Should(Equal(append(before, "pay 6500")))
		Eventually(periods(ctx, db, "meanwhile")).WithContext(ctx).Should(Equal([]string{"meanwhile 1"}))
		Eventually(exported(ctx, "pay")).WithContext(ctx).Should(Equal("True/Exported"))
	})

	It("BILL-50 an invalid configuration file does not stop the exporter; "+
		"started with another table, it writes the present periods there", func(ctx SpecContext) {
		Expect(os.WriteFile(e.config, []byte("billing: [nonsense"), 0o600)).To(Succeed())
		Expect(world.Admin().Patch(ctx, build.Tenant("pay").Object(), paying("7000"))).To(Succeed())
		Eventually(periods(ctx, db, "pay")).WithContext(ctx).Should(ContainElement("pay 7000"))
		Expect(os.WriteFile(e.config, []byte(configuration(fmt.Sprintf("sqlite: {path: %q}\n  table: moved", file), "sqlite")), 0o600)).
			To(Succeed())
		Expect(e.Stop()).To(Succeed())
		e.again(ctx)
		Eventually(periodsOf(ctx, db, "moved", "pay")).WithContext(ctx).Should(Equal([]string{"pay 7000"}))
		Expect(world.Admin().Patch(ctx, build.Tenant("pay").Object(), paying("7001"))).To(Succeed())
		Eventually(periodsOf(ctx, db, "moved", "pay")).WithContext(ctx).Should(Equal([]string{"pay 7000", "pay 7001"}))
	})
})
