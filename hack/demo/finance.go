package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// finance is the user who queries the ledger: the commands of this user are SQL, not kubectl's.
const finance = "finance"

// costCenterLabel is the label of a namespace with the cost center of its tenant, for tools that read labels, such as OpenCost.
const costCenterLabel = "finance.example.com/cost-center"

// warehouse is the demo's ledger: a file of SQLite or, if away is set, a PostgreSQL server that doesn't exist.
type warehouse struct {
	folder string
	away   bool
}

func (w warehouse) file() string { return filepath.Join(w.folder, "billing.db") }

// configuration returns section billing of the operator's configuration, which the exporter reads too.
func (w warehouse) configuration() string {
	engine := fmt.Sprintf("driver: sqlite\n  sqlite: {path: %q}", w.file())
	if w.away {
		engine = fmt.Sprintf("driver: postgres\n  clusterID: demo\n  postgres: {dsnFile: %q}", filepath.Join(w.folder, "dsn"))
	}
	return "\nbilling:\n  " + engine + "\n  flushInterval: 1s\n  namespaceLabels: {costCenter: " + costCenterLabel + "}\n"
}

// startExporter starts the billing exporter with the operator's configuration, under its own account.
func (w warehouse) startExporter(ctx context.Context, world *devcluster.World, manager string) (*process.Process, error) {
	if w.away { // no server listens at that address
		dsn := "host=" + w.folder + " user=warren dbname=postgres"
		if err := os.WriteFile(filepath.Join(w.folder, "dsn"), []byte(dsn), 0o600); err != nil {
			return nil, fmt.Errorf("writing where the warehouse would be: %w", err)
		}
	}
	exporter, _, err := devcluster.StartExporter(ctx, world, manager, world.Operator.ConfigFile, filepath.Join(world.Dir, "exporter.log"))
	return exporter, err
}

// query runs a query in SQL on the ledger. It returns the same as a run of kubectl: a table or an error, and an exit code.
func (w warehouse) query(ctx context.Context, question string) (stdout, stderr string, code int) {
	table, err := w.table(ctx, question)
	if err != nil {
		return "", "error: " + err.Error(), 1
	}
	return table, "", 0
}

func (w warehouse) table(ctx context.Context, question string) (string, error) {
	db, err := billing.OpenSQLite(w.file())
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(ctx, question)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	fmt.Fprintln(out, strings.Join(columns, "\t"))
	fields, targets := make([]string, len(columns)), make([]any, len(columns))
	for i := range fields {
		targets[i] = &fields[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return "", err
		}
		fmt.Fprintln(out, strings.Join(fields, "\t"))
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	err = out.Flush()
	return text.String(), err
}

// bills returns the last scene if the warehouse works: what each tenant paid for, and when, is read by SQL.
func bills() scene {
	const months = "SELECT namespace, tenant, cost_center, CASE WHEN valid_to IS NULL THEN 'until now' ELSE 'ended' END AS lasts FROM " +
		"tenant_billing_periods " +
		"WHERE namespace IN ('payments', 'pay-web') ORDER BY namespace, valid_from"
	return scene{
		name: "billing", story: "A cost center changes, and a sub-namespace moves to another tenant. Finance asks by SQL who paid for what.",
		steps: []step{
			{"admin", `patch lns payments --type=merge -p '{"spec":{"billing":{"costCenter":"4711"}}}'`, wantPrint("patched")},
			{"admin", `patch lns shop --type=merge -p '{"spec":{"billing":{"costCenter":"0815"}}}'`, wantPrint("patched")},
			{"admin", `patch lns payments --type=merge -p '{"spec":{"billing":{"costCenter":"4712"}}}'`, wantPrint("patched")},
			{"admin", "warren move pay-web shop", wantPrint("moved")},
			{finance, months, wantPrint(
				"pay-web     payments   4711          ended", "pay-web     payments   4712          ended",
				"pay-web     shop       0815          until now",
				"payments    payments   4711          ended", "payments    payments   4712          until now").soon()},
			{"admin", "get ns payments pay-web -L " + costCenterLabel + " --no-headers", wantPrint("4712", "0815").soon()},
			{"admin", "wait lns/payments --for=condition=BillingExported --timeout=10s", wantPrint("condition met")},
		},
	}
}

// billsWait returns the last scene if the warehouse is away: a condition reports that, and the tenant is ready all the same.
func billsWait() scene {
	patient := wantPrint("condition met")
	patient.within = 30 * time.Second
	return scene{
		name: "billing", story: "The warehouse was away all the time, and nobody has noticed. What it lacks is written when it is back.",
		steps: []step{
			{"admin", `patch lns payments --type=merge -p '{"spec":{"billing":{"costCenter":"4711"}}}'`, wantPrint("patched")},
			{"admin", "warren move pay-web shop", wantPrint("moved")},
			{"admin", "wait lns/payments --for=condition=BillingExported=False --timeout=20s", patient},
			{"admin", `get lns payments -o jsonpath={.status.conditions[?(@.type=="BillingExported")].reason}`,
				wantPrint("WarehouseUnavailable").soon()},
			{"admin", `get lns payments -o jsonpath={.status.conditions[?(@.type=="Ready")].status}`, wantPrint("True")},
		},
	}
}
