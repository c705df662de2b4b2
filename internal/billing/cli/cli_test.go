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
		t.Run("BILL-42 status of a ledger without a run", func(t *testing.T) {
			want(t, d.told(t, "status"), "No exporter has completed a comparison of this cluster with the ledger yet.\n")
			want(t, d.told(t, "status", "-o", "json"), "[]\n")
		})
		d.paid(t, "4711", "ann@example.com", nine)
		d.paid(t, "4712", "ann@example.com", nine.Add(time.Hour))
		run := billing.Run{ID: "r1", Exporter: "pod-1", Version: "v1", StartedAt: nine, CompleteUntil: nine.Add(time.Minute)}
		if err := d.store.StartRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		t.Run("BILL-42 status", func(t *testing.T) {
			want(t, d.told(t, "status", "-o=csv"),
				"exporter,version,started_at,complete_until,run_id\npod-1,v1,2026-03-01T09:00:00Z,2026-03-01T09:01:00Z,r1\n")
		})
		t.Run("BILL-42 history", func(t *testing.T) {
			want(t, d.told(t, "history", "payments"),
				`NAMESPACE   TENANT     COST CENTER   OWNER             VALID FROM             VALID TO               CORRECTED BY
payments    payments   4711          ann@example.com   2026-03-01T09:00:00Z   2026-03-01T10:00:00Z   -
payments    payments   4712          ann@example.com   2026-03-01T10:00:00Z   -                      -
`)
		})
		t.Run("BILL-42 at", func(t *testing.T) {
			for instant, costCenter := range map[string]string{"2026-03-01T09:30:00Z": "4711", "2026-03-02": "4712", "now": "4712", "NOW": "4712"} {
				var rows []map[string]string
				if err := json.Unmarshal([]byte(d.told(t, "at", instant, "-o", "json")), &rows); err != nil {
					t.Fatal(err)
				}
				if len(rows) != 1 || rows[0]["cost_center"] != costCenter || rows[0]["namespace"] != "payments" {
					t.Errorf("%s: %v", instant, rows)
				}
			}
			want(t, d.told(t, "at", "2026-02-01", "-o=csv"), "namespace,tenant,cost_center,owner,valid_from,valid_to\n")
		})
		t.Run("BILL-42 export says the same as CSV and as JSON", func(t *testing.T) {
			lines, err := csv.NewReader(strings.NewReader(d.told(t, "export", "-o", "csv"))).ReadAll()
			if err != nil || len(lines) != 3 {
				t.Fatal(lines, err)
			}
			var objects []map[string]string
			if err := json.Unmarshal([]byte(d.told(t, "export", "-o", "json")), &objects); err != nil {
				t.Fatal(err)
			}
			for i, line := range lines[1:] {
				object := map[string]string{}
				for j, column := range lines[0] {
					object[column] = line[j]
				}
				if diff := cmp.Diff(object, objects[i]); diff != "" {
					t.Error(diff)
				}
			}
		})
	})
}

func TestCorrect(t *testing.T) {
	onEngines(t, func(t *testing.T, d desk) {
		d.paid(t, "4711", "ann@example.com", nine)
		t.Run("BILL-42 correct, flags before and behind the tenant", func(t *testing.T) {
			out := d.told(t, "correct", "--cost-center=9", "payments", "--from", "2026-03-02", "--until=2026-03-03T12:00:00Z",
				"--author", "ann", "--reason", "INV-7", "-o=csv")
			want(t, out, `namespace,tenant,cost_center,owner,valid_from,valid_to,corrected_by
payments,payments,4711,ann@example.com,2026-03-01T09:00:00Z,2026-03-02T00:00:00Z,
payments,payments,9,ann@example.com,2026-03-02T00:00:00Z,2026-03-03T12:00:00Z,ann: INV-7
payments,payments,4711,ann@example.com,2026-03-03T12:00:00Z,,ann: resumes what was billed before: INV-7
`)
		})
		before := d.told(t, "export", "-o=csv")
		long := strings.Repeat("é", 65)
		for name, line := range map[string][]string{
			"--author is missing":                   {"--cost-center=1", "--from=2026-03-02", "--reason=x"},
			"--reason is missing":                   {"--cost-center=1", "--from=2026-03-02", "--author=x"},
			"--cost-center and --owner are missing": {"--from=2026-03-02", "--author=x", "--reason=y"},
			"--from is missing":                     {"--cost-center=1", "--author=x", "--reason=y"},
			`--from "soon" is no time`:              {"--cost-center=1", "--author=x", "--reason=y", "--from=soon"},
			`--until "2026-02-30" is no time`: {"--cost-center=1", "--author=x", "--reason=y", "--from=2026-02-01",
				"--until=2026-02-30"},
			"must end after it begins":        {"--cost-center=1", "--author=x", "--reason=y", "--from=2026-03-02", "--until=2026-03-02"},
			"--until lies in the future":      {"--cost-center=1", "--author=x", "--reason=y", "--from=2026-03-02", "--until=2999-01-01"},
			"has 65 characters, at most 64":   {"--cost-center=" + long, "--author=x", "--reason=y", "--from=2026-03-02"},
			"has 257 characters, at most 256": {"--owner=" + strings.Repeat("é", 257), "--author=x", "--reason=y", "--from=2026-03-02"},
			"no period between":               {"--cost-center=4711", "--author=x", "--reason=y", "--from=2026-03-01", "--until=2026-03-02"},
		} {
			t.Run("BILL-43 "+name, func(t *testing.T) { refused(t, d, name, append([]string{"correct", "payments"}, line...)...) })
		}
		want(t, d.told(t, "export", "-o=csv"), before)
		t.Run("BILL-83 no correction reaches beyond what the ledger is complete until", func(t *testing.T) {
			run := billing.Run{ID: "r", Exporter: "pod", StartedAt: nine, CompleteUntil: nine.AddDate(0, 0, 9)}
			if err := d.store.StartRun(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			refused(t, d, "lies after 2026-03-10T09:00:00Z, and the ledger is complete only until then",
				"correct", "payments", "--cost-center=7", "--author=x", "--reason=y", "--from=2026-03-05", "--until=2026-03-11")
			out := d.told(t, "correct", "payments", "--cost-center=7", "--author=x", "--reason=y", "--from=2026-03-05", "-o=csv")
			want(t, out[strings.Index(out, "payments,payments,7"):],
				`payments,payments,7,ann@example.com,2026-03-05T00:00:00Z,2026-03-10T09:00:00Z,x: y
payments,payments,4711,ann@example.com,2026-03-10T09:00:00Z,,x: resumes what was billed before: y
`)
		})
	})
}

func TestWrongInput(t *testing.T) {
	onEngines(t, func(t *testing.T, d desk) {
		for says, line := range map[string][]string{
			`tenant "nobody" has no period in the ledger`: {"history", "nobody"},
			"name one TENANT, not 0":                      {"history"},
			`status takes no arguments, got "payments"`:   {"status", "payments"},
			"name one TIME, not 2":                        {"at", "now", "then"},
			`TIME "yesterday" is no time`:                 {"at", "yesterday"},
			`-o "yaml": choose table, csv or json`:        {"export", "-o", "yaml"},
			"unknown flag: --nonsense":                    {"export", "--nonsense"},
			"unknown flag: --dry-run":                     {"status", "--dry-run"},
			`unknown subcommand "drop"`:                   {"drop"},
		} {
			t.Run("BILL-43 "+says, func(t *testing.T) { refused(t, d, says, line...) })
		}
	})
	t.Run("BILL-43 no subcommand", func(t *testing.T) {
		if err := cli.Run(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "name a subcommand: at, correct, ddl") {
			t.Error(err)
		}
	})
	t.Run("BILL-43 no driver, no such file", func(t *testing.T) {
		refused(t, desk{config: configured(t, "none", "table: x")}, "billing.driver is none", "status")
		refused(t, desk{config: filepath.Join(t.TempDir(), "nowhere.yaml")}, "nowhere.yaml", "status")
	})
	t.Run("BILL-43 a ledger that isn't there is not made by asking", func(t *testing.T) {
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
		t.Run("BILL-44 "+driver, func(t *testing.T) {
			d := desk{config: configured(t, driver, engine)}
			out := d.told(t, "ddl")
			if !strings.Contains(out, "CREATE TABLE IF NOT EXISTS tenant_billing (") || !strings.HasSuffix(out, ";\n") {
				t.Error(out)
			}
			var statements []struct{ Statement string }
			if err := json.Unmarshal([]byte(d.told(t, "ddl", "-o=json")), &statements); err != nil || len(statements) < 5 {
				t.Error(statements, err)
			}
		})
	}
}

// Text that tenants write can't control the terminal, and can't look like another row.
func TestTableEscapes(t *testing.T) {
	t.Run("BILL-45 what tenants wrote stays on its row, and steers no terminal", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "billing.db")
		d := opened(t, "sqlite", fmt.Sprintf("sqlite: {path: %q}", file), file)
		d.paid(t, "1\x1b[2J\n2\t3", "ann\u202e@example.com", nine)
		out := d.told(t, "history", "payments")
		if strings.Count(out, "\n") != 2 || !strings.Contains(out, `1\x1b[2J\n2\t3`) || !strings.Contains(out, `ann\u202e@example.com`) {
			t.Errorf("%q", out)
		}
	})
}

// Finance opens the CSV in a spreadsheet, and a user who makes an LNamespace chooses the owner that is shown there.
func TestCSVDisarmsFormulas(t *testing.T) {
	t.Run("BILL-55 what tenants wrote is no formula in a spreadsheet, and as they wrote it elsewhere", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "billing.db")
		d := opened(t, "sqlite", fmt.Sprintf("sqlite: {path: %q}", file), file)
		d.paid(t, "=1+1", `a;=cmd|'/C calc'!A0`, nine)
		for _, line := range [][]string{{"history", "payments"}, {"at", "now"}, {"export"}} {
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
