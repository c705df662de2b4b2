package cli_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/cli"
)

func TestQuestions(t *testing.T) {
	onEngines(t, func(t *testing.T, d desk) {
		t.Run("BILL-42 status of a ledger without a run says that no exporter has completed a comparison; "+
			"as JSON it is an empty list", func(t *testing.T) {
			want(t, d.told(t, "status"), "No exporter has completed a comparison of this cluster with the ledger yet.\n")
			want(t, d.told(t, "status", "-o", "json"), "[]\n")
		})
		d.paid(t, "4711", "ann@example.com", nine)
		d.paid(t, "4712", "ann@example.com", nine.Add(time.Hour))
		run := billing.Run{ID: "r1", Exporter: "pod-1", Version: "v1", StartedAt: nine, CompleteUntil: nine.Add(time.Minute)}
		if err := d.store.StartRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		t.Run("BILL-42 status prints the runs as CSV", func(t *testing.T) {
			want(t, d.told(t, "status", "-o=csv"),
				"exporter,version,started_at,complete_until,run_id\npod-1,v1,2026-03-01T09:00:00Z,2026-03-01T09:01:00Z,r1\n")
		})
		t.Run("BILL-42 sql prints rows as CSV or JSON, with flags before or after the statement, "+
			"and the count of changed rows", func(t *testing.T) {
			const question = "SELECT namespace, cost_center, valid_from, valid_to FROM tenant_billing_periods ORDER BY valid_from"
			want(t, d.told(t, "sql", "-o=csv", question), `namespace,cost_center,valid_from,valid_to
payments,4711,`+d.instant(nine)+`,`+d.instant(nine.Add(time.Hour))+`
payments,4712,`+d.instant(nine.Add(time.Hour))+`,
`)
			var rows []map[string]string
			if err := json.Unmarshal([]byte(d.told(t, "sql", question, "-o", "json")), &rows); err != nil || len(rows) != 2 ||
				rows[1]["cost_center"] != "4712" {
				t.Error(rows, err)
			}
			want(t, d.told(t, "sql", "SELECT tenant FROM tenant_billing_periods WHERE tenant = 'nobody'", "-o=csv"), "tenant\n")
			want(t, d.told(t, "sql", "--write", "UPDATE tenant_billing SET owner = 'gone' WHERE owner = 'nobody'"), "CHANGED ROWS\n0\n")
		})
	})
}

func TestWrongInput(t *testing.T) {
	onEngines(t, func(t *testing.T, d desk) {
		for says, line := range map[string][]string{
			"the ledger refused the query: ":            {"sql", "SELECT nothing FROM nowhere"},
			"the ledger refused the statement: ":        {"sql", "--write", "DROP TABLE nowhere"},
			"name one STATEMENT, not 0":                 {"sql"},
			"name one STATEMENT, not 2":                 {"sql", "SELECT", "1"},
			`status takes no arguments, got "payments"`: {"status", "payments"},
			`-o "yaml": choose table, csv or json`:      {"sql", "SELECT 1", "-o", "yaml"},
			"unknown flag: --nonsense":                  {"status", "--nonsense"},
			`unknown subcommand "drop"`:                 {"drop"},
		} {
			t.Run("BILL-43 wrong arguments, flags, formats or SQL are an error of one sentence, and stdout is empty: "+
				says, func(t *testing.T) { refused(t, d, says, line...) })
		}
	})
	t.Run("BILL-43 without a subcommand the error lists the subcommands", func(t *testing.T) {
		err := cli.Run(t.Context(), nil, nil)
		if err == nil || !strings.Contains(err.Error(), "name a subcommand: copy, ddl, help, sql, status") {
			t.Error(err)
		}
	})
	t.Run("BILL-43 driver none and a missing configuration file are errors of one sentence, and stdout is empty", func(t *testing.T) {
		refused(t, desk{config: configured(t, "none", "table: x")}, "billing.driver is none", "status")
		refused(t, desk{config: filepath.Join(t.TempDir(), "nowhere.yaml")}, "nowhere.yaml", "status")
	})
	t.Run("BILL-43 status of a missing SQLite file is an error, and creates no file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "billing.db")
		d := desk{config: configured(t, "sqlite", fmt.Sprintf("sqlite: {path: %q}", file))}
		refused(t, d, "billing.sqlite.path "+file+": there is no ledger", "status")
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
}

// An administrator needs the DDL before the warehouse exists, so ddl doesn't connect to it.
func TestDDL(t *testing.T) {
	for driver, engine := range map[string]string{"sqlite": "sqlite: {path: /nowhere/billing.db}",
		"postgres": "postgres: {dsnFile: /nowhere/dsn}"} {
		t.Run("BILL-44 ddl prints the statements without reaching the warehouse, its folder, "+
			"or the file with its password: "+driver, func(t *testing.T) {
			d := desk{config: configured(t, driver, engine)}
			out := d.told(t, "ddl")
			if !strings.Contains(out, "CREATE TABLE IF NOT EXISTS tenant_billing (") || !strings.HasSuffix(out, ";\n") {
				t.Error(out)
			}
			var statements []struct{ Statement string }
			if err := json.Unmarshal([]byte(d.told(t, "ddl", "-o=json")), &statements); err != nil || len(statements) < 4 {
				t.Error(statements, err)
			}
		})
	}
}

// Text that tenants write can't control the terminal, and can't look like another row.
func TestTableEscapes(t *testing.T) {
	t.Run("BILL-45 a table has one line for each period, and shows line ends, "+
		"tabs and escape sequences of a value as escapes", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "billing.db")
		d := opened(t, "sqlite", fmt.Sprintf("sqlite: {path: %q}", file), file)
		d.paid(t, "1\x1b[2J\n2\t3", "ann\u202e@example.com", nine)
		out := d.told(t, "sql", "SELECT * FROM tenant_billing_periods")
		if strings.Count(out, "\n") != 2 || !strings.Contains(out, `1\x1b[2J\n2\t3`) || !strings.Contains(out, `ann\u202e@example.com`) {
			t.Errorf("%q", out)
		}
	})
}

// Finance opens the CSV in a spreadsheet, and a user who makes an LNamespace chooses the owner that is shown there.
func TestCSVDisarmsFormulas(t *testing.T) {
	t.Run("BILL-55 in CSV an apostrophe comes before = at the beginning of a value or after a semicolon; "+
		"JSON has the value unchanged", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "billing.db")
		d := opened(t, "sqlite", fmt.Sprintf("sqlite: {path: %q}", file), file)
		d.paid(t, "=1+1", `a;=cmd|'/C calc'!A0`, nine)
		for _, line := range [][]string{{"sql", "SELECT * FROM tenant_billing_periods"}} {
			records, err := csv.NewReader(strings.NewReader(d.told(t, append(line, "-o=csv")...))).ReadAll()
			if err != nil || len(records) != 2 {
				t.Fatal(records, err)
			}
			for _, cell := range []string{"'=1+1", `a;'=cmd|'/C calc'!A0`} {
				if !slices.Contains(records[1], cell) {
					t.Errorf("%v: no cell %q in %q", line, cell, records[1])
				}
			}
			if out := d.told(t, append(line, "-o=json")...); !strings.Contains(out, `"=1+1"`) {
				t.Errorf("%v: %s", line, out)
			}
		}
	})
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// refused checks that a command fails with one sentence that contains says, and prints nothing to the output, which a program may read.
func refused(t *testing.T, d desk, says string, line ...string) {
	t.Helper()
	out, err := d.ask(t, line...)
	if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v: %v", line, err)
	}
	if out != "" {
		t.Errorf("%v printed %q", line, out)
	}
}
