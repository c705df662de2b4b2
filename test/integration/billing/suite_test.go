// Package billing_test runs the billing exporter as a process of its own, under its own service account, on a real control plane
// with an operator, and reads the ledger by SQL: cases of docs/behaviour/billing.md.
package billing_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
	"github.com/warren-tenancy/warren/test/ledger"
	"github.com/warren-tenancy/warren/test/suite"
)

func TestBilling(t *testing.T) { suite.Run(t, "Billing") }

// account is the exporter's service account.
const account = "system:serviceaccount:warren-system:warren-billing-exporter"

const clusterID = "acme/europe-west1/main"

var (
	world   *devcluster.World
	manager string
)

// The cases of both engines run one after the other, in one process, because all exporters share one Lease.
var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	manager, err = devcluster.BuildManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(devcluster.BuildBilling(ctx, programs.Billing, programs.BigQuery)).To(Succeed())
	world, err = devcluster.Start(ctx, devcluster.Options{
		ControlPlane: controlplane.Options{Users: map[string][]string{account: {"system:serviceaccounts",
			"system:serviceaccounts:warren-system"}}},
		Components: []string{"config/components/billing-sqlite"},
		Operator:   devcluster.OperatorOptions{Manager: manager, Config: configuration("sqlite: {path: /nowhere}", "sqlite")},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(world.Stop()).To(Succeed()) })
})

// configuration returns the text of one configuration file, which the exporter and the operator share. The operator uses only the driver's
// name from it.
func configuration(engine, driver string) string {
	return fmt.Sprintf(`apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
billing:
  driver: %s
  clusterID: %s
  flushInterval: 1s
  resyncInterval: 1m
  %s
`, driver, clusterID, engine)
}

// exporter is a run of `manager billing-exporter`.
type exporter struct {
	*process.Process
	// health is the URL of its health checks.
	health string
	// config is its configuration file.
	config string
}

func startExporter(ctx context.Context, name, config string) *exporter {
	GinkgoHelper()
	dir := filepath.Join(world.Dir, name)
	Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
	e := &exporter{config: filepath.Join(dir, "config.yaml")}
	Expect(os.WriteFile(e.config, []byte(config), 0o600)).To(Succeed())
	var err error
	e.Process, e.health, err = devcluster.StartExporter(ctx, world, manager, e.config, filepath.Join(dir, "exporter.log"))
	Expect(err).NotTo(HaveOccurred())
	return e
}

// end stops the exporter. Below a case that failed it prints the end of the log.
func (e *exporter) end() {
	if e == nil {
		return
	}
	if CurrentSpecReport().Failed() {
		GinkgoWriter.Println(e.LogTail(40))
	}
	if e.Running() {
		Expect(e.Stop()).To(Succeed())
	}
}

// again starts the exporter again, at the same address.
func (e *exporter) again(ctx context.Context) {
	GinkgoHelper()
	Expect(e.StartReady(ctx, process.HTTPOK(nil, e.health+"/readyz"))).To(Succeed())
}

func paying(costCenter string) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"billing":{"costCenter":%q}}}`, costCenter))
}

// exported reads a tenant's condition BillingExported, as "status/reason".
func exported(ctx context.Context, tenant string) func() string {
	return func() string {
		lns := &v1alpha1.LNamespace{}
		if err := world.Admin().Get(ctx, client.ObjectKey{Name: tenant}, lns); err != nil {
			return err.Error()
		}
		c := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionBillingExported)
		if c == nil {
			return "absent"
		}
		return string(c.Status) + "/" + c.Reason
	}
}

// periods are the billing periods of a namespace, as "tenant cost-center", then "ended" if the last one has ended. A gap between two is
// listed as "gap".
func periods(ctx context.Context, db *sql.DB, namespace string) func() []string {
	return periodsOf(ctx, db, "tenant_billing", namespace)
}

func periodsOf(ctx context.Context, db *sql.DB, table, namespace string) func() []string {
	return func() (found []string) {
		var last ledger.Period
		all, err := ledger.Periods(ctx, db, table, "namespace = '"+namespace+"'")
		if err != nil {
			return []string{err.Error()}
		}
		for _, p := range all {
			if len(found) > 0 && !last.ValidTo.Equal(p.ValidFrom) {
				found = append(found, "gap")
			}
			found = append(found, p.Tenant+" "+p.CostCenter)
			last = p
		}
		if len(found) > 0 && !last.ValidTo.IsZero() {
			found = append(found, "ended")
		}
		return found
	}
}

func tenant(ctx context.Context, name, costCenter string) {
	GinkgoHelper()
	lns := &v1alpha1.LNamespace{}
	lns.Name = name
	lns.Spec.Billing = &v1alpha1.Billing{CostCenter: costCenter, Owner: "ann@example.com"}
	Expect(world.Admin().Create(ctx, lns)).To(Succeed())
}

// soon is how long a case watches, at most, that nothing happens: test.Quiet may shorten it.
const soon = 3 * time.Second

func countRows(ctx context.Context, file string) (n int) {
	GinkgoHelper()
	db, err := billing.OpenSQLite(file)
	Expect(err).NotTo(HaveOccurred())
	defer db.Close()
	Expect(db.QueryRowContext(ctx, "SELECT count(*) FROM tenant_billing").Scan(&n)).To(Succeed())
	return n
}
