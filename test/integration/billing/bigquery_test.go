package billing_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing/bigquery"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/fakebigquery"
)

var _ = Describe("a ledger in BigQuery", Ordered, func() {
	var server *fakebigquery.Server
	var e *exporter
	var db *sql.DB
	var key, config string
	BeforeAll(func() {
		var err error
		server, err = fakebigquery.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		key = filepath.Join(world.Dir, "bigquery-key.json")
		Expect(server.WriteCredentials(key)).To(Succeed())
		db = bigquery.Open(fakebigquery.Options(server.Endpoint(), key))
		DeferCleanup(db.Close)
		config = configuration(fmt.Sprintf("bigquery: {project: %s, dataset: %s, location: %s, endpoint: %q, credentialsFile: %q}",
			fakebigquery.Project, fakebigquery.Dataset, fakebigquery.Location, server.Endpoint(), key), "bigquery")
	})
	AfterAll(func() { e.end() })

	It("BILL-56 with driver bigquery, manager hands the exporter and manager billing over to a program that uses "+
		"BigQuery", func(ctx SpecContext) {
		tenant(ctx, "bq-pay", "1")
		e = startExporter(ctx, "bigquery", config)
		Eventually(periods(ctx, db, "bq-pay")).WithContext(ctx).Should(Equal([]string{"bq-pay 1"}))
		Eventually(exported(ctx, "bq-pay")).WithContext(ctx).Should(Equal("True/Exported"))
		Expect(world.Admin().Patch(ctx, build.Tenant("bq-pay").Object(), paying("2"))).To(Succeed())
		Eventually(periods(ctx, db, "bq-pay")).WithContext(ctx).Should(Equal([]string{"bq-pay 1", "bq-pay 2"}))

		out, err := exec.CommandContext(ctx, manager, "billing", "sql", "--config="+e.config, "-o=csv",
			"SELECT namespace, tenant, cost_center, owner FROM tenant_billing_periods WHERE valid_to IS NULL").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(string(out)).To(ContainSubstring("bq-pay,bq-pay,2,ann@example.com\n"))
	})

	It("BILL-16 BigQuery answers accessDenied: the tenant has AccessDenied; "+
		"once access is allowed, a new exporter stores the change", func(ctx SpecContext) {
		server.Break(fakebigquery.Fault{Request: fakebigquery.Insert, Status: http.StatusForbidden, Reason: "accessDenied",
			Message: "Access Denied: Table finops.tenant_billing"})
		DeferCleanup(server.Heal)
		Expect(world.Admin().Patch(ctx, build.Tenant("bq-pay").Object(), paying("3"))).To(Succeed())
		Eventually(exported(ctx, "bq-pay")).WithContext(ctx).Should(Equal("False/AccessDenied"))
		server.Heal()
		// The exporter waits for five minutes now; a new process doesn't.
		Expect(e.Kill()).To(Succeed())
		e.again(ctx)
		Eventually(periods(ctx, db, "bq-pay")).WithContext(ctx).Should(Equal([]string{"bq-pay 1", "bq-pay 2", "bq-pay 3"}))
		Eventually(exported(ctx, "bq-pay")).WithContext(ctx).Should(Equal("True/Exported"))
	})

	It("FLT-F38 while BigQuery is slow, refuses statements or loses answers, tenants are created and deleted as usual; afterwards each "+
		"change is in the ledger, and no period twice", func(ctx SpecContext) {
		want := periods(ctx, db, "bq-pay")()
		for i, fault := range []fakebigquery.Fault{
			{Request: fakebigquery.Insert, Hold: true},
			{Request: fakebigquery.Insert, Status: http.StatusServiceUnavailable, Reason: "backendError", Message: "try again"},
			{Request: fakebigquery.Insert, LoseAnswer: true},
		} {
			before := server.Requests(fakebigquery.Insert)
			server.Break(fault)
			DeferCleanup(server.Heal)
			costCenter, name := fmt.Sprint(80+i), fmt.Sprintf("bq-new-%d", i)
			Expect(world.Admin().Patch(ctx, build.Tenant("bq-pay").Object(), paying(costCenter))).To(Succeed())
			tenant(ctx, name, "1")
			Eventually(func() error { return world.Admin().Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}) }).
				WithContext(ctx).Should(Succeed())
			Expect(world.Admin().Delete(ctx, build.Tenant(name).Object())).To(Succeed())
			Eventually(func() error { return world.Admin().Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.LNamespace{}) }).WithContext(ctx).
				Should(Satisfy(apierrors.IsNotFound))
			Eventually(func() int { return server.Requests(fakebigquery.Insert) }).WithContext(ctx).Should(BeNumerically(">", before),
				"the fault has met somebody")
			server.Heal()
			want = append(want, "bq-pay "+costCenter)
			Eventually(periods(ctx, db, "bq-pay")).WithContext(ctx).Should(Equal(want))
			Eventually(periods(ctx, db, name)).WithContext(ctx).Should(Equal([]string{name + " 1", "ended"}))
		}
	})

	It("BILL-56 an exporter with BigQuery uses at most 80 MiB", func() {
		if os.Getenv("WARREN_RACE") == "1" {
			Skip("the race detector takes memory of its own")
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.PID()))
		if os.IsNotExist(err) {
			Skip("this machine has no /proc")
		}
		Expect(err).NotTo(HaveOccurred())
		match := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
		Expect(match).NotTo(BeNil())
		resident, err := strconv.Atoi(string(match[1]))
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("resident KiB of the exporter with BigQuery", resident)
		Expect(resident).To(BeNumerically("<=", 80<<10), "KiB")
	})
})
