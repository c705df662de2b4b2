package billing_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/postgres"
)

var _ = Describe("a warehouse that goes away", Ordered, func() {
	var server *postgres.Server
	var e *exporter
	var db *sql.DB
	BeforeAll(func() {
		if !postgres.Installed() {
			Skip(postgres.Missing)
		}
		var err error
		server, err = postgres.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		db, err = billing.OpenPostgres(server.DSN)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(db.Close)
	})
	AfterAll(func() { e.end() })

	It("BILL-12 in an outage of PostgreSQL tenants are created, changed and deleted; "+
		"afterwards the ledger has all changes, with the deleted tenant's END", func(ctx SpecContext) {
		dsn := filepath.Join(world.Dir, "dsn")
		Expect(os.WriteFile(dsn, []byte(server.DSN+"\n"), 0o600)).To(Succeed())
		tenant(ctx, "old", "1")
		tenant(ctx, "gone", "1")
		e = startExporter(ctx, "postgres", configuration(fmt.Sprintf("postgres: {dsnFile: %q}", dsn), "postgres"))
		Eventually(periods(ctx, db, "gone")).WithContext(ctx).Should(Equal([]string{"gone 1"}))
		Eventually(exported(ctx, "old")).WithContext(ctx).Should(Equal("True/Exported"))

		server.Halt()
		for _, costCenter := range []string{"2", "3"} {
			Expect(world.Admin().Patch(ctx, build.Tenant("old").Object(), paying(costCenter))).To(Succeed())
		}
		tenant(ctx, "new", "9")
		Eventually(func() error { return world.Admin().Get(ctx, client.ObjectKey{Name: "new"}, &corev1.Namespace{}) }).
			WithContext(ctx).Should(Succeed())
		Expect(world.Admin().Delete(ctx, build.Tenant("gone").Object())).To(Succeed())
		Eventually(func() error { return world.Admin().Get(ctx, client.ObjectKey{Name: "gone"}, &v1alpha1.LNamespace{}) }).WithContext(ctx).
			Should(Satisfy(apierrors.IsNotFound))
		Eventually(exported(ctx, "old")).WithContext(ctx).Should(Equal("False/WarehouseUnavailable"))

		Expect(server.Resume()).To(Succeed())
		Eventually(periods(ctx, db, "old")).WithContext(ctx).Should(Equal([]string{"old 1", "old 2", "old 3"}))
		Eventually(periods(ctx, db, "new")).WithContext(ctx).Should(Equal([]string{"new 9"}))
		Eventually(periods(ctx, db, "gone")).WithContext(ctx).Should(Equal([]string{"gone 1", "ended"}))
		Eventually(exported(ctx, "old")).WithContext(ctx).Should(Equal("True/Exported"))
	})

	It("BILL-13 a tenant changes twice in an outage, and the exporter is killed: "+
		"the next one appends the present state alone", func(ctx SpecContext) {
		server.Halt()
		for _, costCenter := range []string{"4", "5"} {
			Expect(world.Admin().Patch(ctx, build.Tenant("old").Object(), paying(costCenter))).To(Succeed())
		}
		Eventually(exported(ctx, "old")).WithContext(ctx).Should(Equal("False/WarehouseUnavailable"))
		Expect(e.Kill()).To(Succeed())
		e.again(ctx)
		Expect(server.Resume()).To(Succeed())
		Eventually(periods(ctx, db, "old")).WithContext(ctx).Should(Equal([]string{"old 1", "old 2", "old 3", "old 5"}))
		Eventually(exported(ctx, "old")).WithContext(ctx).Should(Equal("True/Exported"))
	})
})
