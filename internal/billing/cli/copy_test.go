package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/cli"
	"github.com/warren-tenancy/warren/test/postgres"
)

// ledgerRows has the rows, the periods and the runs of a ledger, without what engines print differently.
const (
	ledgerRows = "SELECT event_id, cluster, namespace, tenant, generation, op, cost_center, owner, content_hash FROM tenant_billing ORDER BY 1"
	periodRows = "SELECT cluster, namespace, tenant, cost_center, event_id FROM tenant_billing_periods ORDER BY namespace, valid_from"
	runRows    = "SELECT run_id, cluster, exporter, version FROM tenant_billing_runs ORDER BY run_id"
)

// onPostgres is an empty database of PostgreSQL, on a server of its own, and a configuration of it.
func onPostgres(t *testing.T) desk {
	t.Helper()
	postgres.Require(t)
	server, err := postgres.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	dsn := filepath.Join(t.TempDir(), "dsn")
	write(t, dsn, server.DSN+"\n")
	return desk{config: configured(t, "postgres", fmt.Sprintf("postgres: {dsnFile: %q}", dsn))}
}

func onSQLite(t *testing.T) desk {
	t.Helper()
	file := filepath.Join(t.TempDir(), "billing.db")
	return desk{config: configured(t, "sqlite", fmt.Sprintf("sqlite: {path: %q}", file)), file: file}
}

// used returns the desk with a ledger of two periods, a correction and a run.
func (d desk) used(t *testing.T) desk {
	t.Helper()
	d = d.reopened(t)
	d.paid(t, "4711", "ann@example.com", nine)
	d.paid(t, "4712", "ann <b> \\ \"&@example.com", nine.Add(time.Hour))
	d.told(t, "sql", "--write", "INSERT INTO tenant_billing SELECT 'INV-7 by ann@example.com, correct ' || event_id, cluster, namespace, "+
		"namespace_uid, tenant, tenant_uid, generation, op, '4799', owner, labels, 'INV-7 ' || content_hash, effective_at, recorded_at "+
		"FROM tenant_billing WHERE cost_center = '4711'")
	run := billing.Run{ID: "r1", Exporter: "pod-1", Version: "v1", StartedAt: nine, CompleteUntil: nine.Add(2 * time.Hour)}
	if err := d.store.StartRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	return d
}

// same checks that both ledgers answer alike.
func same(t *testing.T, source, target desk) {
	t.Helper()
	for _, question := range []string{ledgerRows, periodRows, runRows} {
		if diff := cmp.Diff(source.told(t, "sql", "-o=csv", question), target.told(t, "sql", "-o=csv", question)); diff != "" {
			t.Errorf("%s: source (-) and target (+) differ:\n%s", question, diff)
		}
	}
	for _, column := range []string{"effective_at", "recorded_at", "labels"} {
		question := "SELECT " + column + " FROM tenant_billing ORDER BY event_id"
		if got, want := instants(target.told(t, "sql", "-o=csv", question)), instants(source.told(t, "sql", "-o=csv", question)); got != want {
			t.Errorf("%s: got %s, want %s", column, got, want)
		}
	}
}

// instants writes times and JSON as both engines could.
func instants(csv string) string {
	lines := strings.Split(csv, "\n")
	for i, line := range lines {
		if at, err := time.Parse(time.RFC3339Nano, line); err == nil {
			lines[i] = at.UTC().Format(time.RFC3339Nano)
		}
		lines[i] = strings.ReplaceAll(lines[i], `: `, `:`)
	}
	return strings.Join(lines, "\n")
}

func TestCopy(t *testing.T) {
	for name, engines := range map[string]func() (source, target desk){
		"SQLite to PostgreSQL": func() (desk, desk) { return onSQLite(t), onPostgres(t) },
		"PostgreSQL to SQLite": func() (desk, desk) { return onPostgres(t), onSQLite(t) },
		"SQLite to SQLite":     func() (desk, desk) { return onSQLite(t), onSQLite(t) },
	} {
		t.Run("BILL-91 copy brings every row and run to an empty ledger of another driver, and says what to do next; "+
			"a second copy adds nothing, a later one what is new: "+name, func(t *testing.T) {
			source, target := engines()
			source = source.used(t)
			said := target.told(t, "copy", "--from", source.config)
			if !strings.Contains(said, "\n"+cluster+"   3      3             1\n") || !strings.Contains(said, "All 3 rows are in the new ledger") ||
				!strings.Contains(said, "Next: deploy the configuration with billing.driver") {
				t.Error(said)
			}
			same(t, source, target)
			counts := "clusters,rows,copied_rows,copied_runs\n" + cluster + ","
			want(t, target.told(t, "copy", "--from", source.config, "-o=csv"), counts+"3,0,0\n")
			source.paid(t, "4713", "ann@example.com", nine.Add(3*time.Hour))
			if err := source.store.MoveWatermark(t.Context(), "r1", nine.Add(4*time.Hour)); err != nil {
				t.Fatal(err)
			}
			want(t, target.told(t, "copy", "--from", source.config, "-o=csv"), counts+"4,1,0\n")
			same(t, source, target)
			if until := target.told(t, "status", "-o=csv"); !strings.Contains(until, "2026-03-01T13:00:00Z") {
				t.Errorf("the watermark has not moved: %s", until)
			}
		})
	}
	t.Run("BILL-92 copy gives rows of cluster local the target's billing.clusterID; periods stay what they were", func(t *testing.T) {
		source, target := onSQLite(t), onPostgres(t)
		source = source.used(t)
		source.told(t, "sql", "--write", "UPDATE tenant_billing SET cluster = 'local'")
		source.told(t, "sql", "--write", "UPDATE tenant_billing_runs SET cluster = 'local'")
		target.told(t, "copy", "--from", source.file)
		for _, question := range []string{ledgerRows, periodRows, runRows} {
			want(t, target.told(t, "sql", "-o=csv", question), strings.ReplaceAll(source.told(t, "sql", "-o=csv", question), "local", cluster))
		}
		want(t, target.told(t, "copy", "--from", source.file, "-o=csv"), "clusters,rows,copied_rows,copied_runs\n"+cluster+",3,0,0\n")
	})
}

func TestCopyRefuses(t *testing.T) {
	source, target := onSQLite(t), onPostgres(t)
	source = source.used(t)
	refuse := func(says string, line ...string) {
		t.Run("BILL-93 copy refuses a ledger that lacks rows and has others of the same cluster, a row with other values, another cluster, "+
			"and no ledger; nothing is copied: "+says, func(t *testing.T) {
			refused(t, target, says, append([]string{"copy"}, line...)...)
		})
	}
	refuse("--from is missing: name the ledger to copy from")
	refuse("no such file", "--from", "/nowhere/billing.db")
	refuse("the file is neither a ledger in SQLite nor a valid configuration file", "--from", mustWrite(t, "billing: 7\n"))
	refuse("billing.driver is none", "--from", configured(t, "none", "table: x"))
	refuse("there is no ledger", "--from", onSQLite(t).config)
	source.told(t, "sql", "--write", "UPDATE tenant_billing SET cluster = 'elsewhere'")
	refuse("has rows of cluster elsewhere, and none of "+cluster+": set billing.clusterID", "--from", source.config)
	source.told(t, "sql", "--write", "UPDATE tenant_billing SET cluster = '"+cluster+"'")

	target = target.reopened(t)
	target.paid(t, "9999", "exporter@example.com", nine.Add(time.Minute))
	refuse("the target lacks 3 rows, and has 1 of the same cluster that the source lacks", "--from", source.config)
	want(t, target.told(t, "sql", "-o=csv", "SELECT count(*) AS n FROM tenant_billing"), "n\n1\n")
	target.told(t, "sql", "--write", "UPDATE tenant_billing SET cluster = 'another cluster of this warehouse'")
	target.told(t, "copy", "--from", source.config)
	want(t, target.told(t, "sql", "-o=csv", "SELECT count(*) AS n FROM tenant_billing"), "n\n4\n")
	target.paid(t, "9999", "exporter@example.com", nine.Add(time.Minute))
	target.told(t, "copy", "--from", source.config) // the exporter has gone on, and nothing is missing
	target.told(t, "sql", "--write", "UPDATE tenant_billing SET owner = 'gone' WHERE cost_center = '4711'")
	refuse("has other values in the target", "--from", source.config)
}

func mustWrite(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, text)
	return path
}

func TestCopyJob(t *testing.T) {
	t.Run("BILL-91 the Job of the guide runs copy with flags that exist", func(t *testing.T) {
		text, err := os.ReadFile("../../../docs/guides/billing/copy-job.yaml")
		if err != nil {
			t.Fatal(err)
		}
		job := &batchv1.Job{}
		if err := yaml.UnmarshalStrict(text, job); err != nil {
			t.Fatal(err)
		}
		command := job.Spec.Template.Spec.Containers[0].Command
		if !slices.Equal(command[:3], []string{"/manager", "billing", "copy"}) {
			t.Fatal(command)
		}
		err = cli.Run(t.Context(), command[2:], &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "/etc/warren-billing-copy/config.yaml") {
			t.Errorf("it must read its configuration first: %v", err)
		}
	})
}
